"""Network file systems are recognised from the kernel's own table."""

from __future__ import annotations

from pathlib import Path

import pytest

from bailiwick.errors import UsageError
from bailiwick.journal.mounts import NETWORK, filesystem_of, network_filesystem, refuse_network

TABLE = r"""
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
40 22 0:35 / /home rw,relatime shared:20 - nfs4 server:/home rw,vers=4.2
41 40 254:1 / /home/ann/local rw - xfs /dev/vdb rw
42 22 0:36 / /mnt/my\040share rw - cifs //server/share rw
43 22 0:37 / /mnt/twice rw - nfs server:/a rw
44 22 0:38 / /mnt/twice rw - ext4 /dev/vdc rw
45 22 0:39 / /mnt/ssh rw - fuse.sshfs ann@server:/ rw
46 22 0:40 / /mnt/gluster rw master:1 - fuse.glusterfs server:/v rw
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/var/lib/x", None),
        ("/home/ann/.local/state", "nfs4"),
        ("/home/ann/local/state", None),
        ("/homestead", None),
        ("/mnt/my share/state", "cifs"),
        ("/mnt/twice/state", None),
        ("/mnt/ssh", "fuse.sshfs"),
        ("/mnt/gluster/x", "fuse.glusterfs"),
    ],
)
def test_the_nearest_and_last_mount_above_the_path_decides(path: str, kind: str | None) -> None:
    """A local disk may be mounted inside a network home, or over it."""
    assert network_filesystem(TABLE, Path(path)) == kind


@pytest.mark.parametrize("kind", sorted(NETWORK))
def test_every_listed_type_is_recognised(kind: str) -> None:
    """Each of them has been seen to corrupt or to hang."""
    assert network_filesystem(f"22 1 0:1 / / rw - {kind} server:/ rw", Path("/x")) == kind


@pytest.mark.parametrize("table", ["", "nonsense", "1 2 3 / /other rw - nfs s rw", "22 1 0:1 / / rw"])
def test_what_the_table_does_not_say_is_unknown(table: str) -> None:
    """An unknown file system is let pass: refusing would lock people out for nothing."""
    assert filesystem_of(table, Path("/x/y")) is None
    assert network_filesystem(table, Path("/x/y")) is None


def test_the_refusal_says_where_why_and_what_to_do(tmp_path: Path) -> None:
    """It meets a person on the first command they try."""
    table = tmp_path / "mountinfo"
    table.write_text("22 1 0:1 / / rw - nfs4 server:/ rw\n")
    with pytest.raises(UsageError) as caught:
        refuse_network(tmp_path / "state", table)
    assert "nfs4" in caught.value.what
    assert str(tmp_path / "state") in caught.value.what
    assert "BAILIWICK_HOME" in caught.value.hint
    assert caught.value.exit_code == 2


def test_a_machine_without_the_table_is_let_pass(tmp_path: Path) -> None:
    """There is none outside Linux."""
    refuse_network(tmp_path, tmp_path / "absent")
