# ruff: noqa: S101 - a conformance suite asserts
"""What a program sees of the host's files, and what it may do to them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bailiwick.errors import NotReady
from bailiwick.sandbox.spec import HOME, INNER, Bind
from bailiwick.testing.sandbox_conformance.stage import (
    PATH,
    SandboxFixture,
    folder,
    python,
)


class FilePromises(SandboxFixture):
    """What a program sees of the host's files, and what it may do to them."""

    def test_the_tree_is_where_it_starts_and_what_it_writes_stays(self, tmp_path: Path) -> None:
        """The work of an agent is its files."""
        sandbox_spec = self.sandbox_spec(tmp_path)
        (self.tree(tmp_path) / "given").write_text("from outside")
        end = self.play(tmp_path, ("sh", "-c", "cat given; mkdir new; echo made > new/file"), sandbox_spec=sandbox_spec)
        assert end.stdout == b"from outside"
        assert (self.tree(tmp_path) / "new/file").read_text() == "made\n"

    def test_what_is_shown_read_only_can_t_be_changed(self, tmp_path: Path) -> None:
        """Prepared environments are shared by everybody; one lies on top of the tree."""
        self.needs_walls()
        shared = folder(tmp_path / "shared")
        (shared / "tool").write_text("whole")
        shared.chmod(0o777)
        sandbox_spec = self.sandbox_spec(tmp_path)
        sandbox_spec = replace(sandbox_spec, binds=(*sandbox_spec.binds, Bind(shared, INNER / ".venv")))
        script = "cat .venv/tool; rm -f .venv/tool; echo x > .venv/tool; chmod 777 .venv; mv .venv away; touch .venv/x"
        end = self.play(tmp_path, ("sh", "-c", script), sandbox_spec=sandbox_spec)
        assert end.stdout == b"whole"
        assert [(p.name, p.read_text()) for p in shared.iterdir()] == [("tool", "whole")]

    def test_a_link_in_the_tree_never_leads_a_mount_elsewhere(self, tmp_path: Path) -> None:
        """An agent could put a link where the next sandbox mounts something, and whoever mounts is mightier than it."""
        self.needs_walls()
        outside, shared = folder(tmp_path / "outside"), folder(tmp_path / "shared")
        (self.tree(tmp_path) / "folder").symlink_to(outside)
        sandbox_spec = self.sandbox_spec(tmp_path)
        sandbox_spec = replace(sandbox_spec, binds=(*sandbox_spec.binds, Bind(shared, INNER / "folder/deep")))
        with pytest.raises(NotReady):
            self.play(tmp_path, ("true",), sandbox_spec=sandbox_spec)
        assert list(outside.iterdir()) == []

    def test_a_home_is_kept_where_one_is_given(self, tmp_path: Path) -> None:
        """An agent finds its session again."""
        home = folder(tmp_path / "home")
        sandbox_spec = replace(self.sandbox_spec(tmp_path), home=home)
        env = {"PATH": PATH, "HOME": str(HOME)}
        assert self.play(tmp_path, ("sh", "-c", "echo kept > $HOME/file"), sandbox_spec=sandbox_spec, env=env).code == 0
        assert (
            self.play(tmp_path, ("sh", "-c", "cat $HOME/file"), sandbox_spec=sandbox_spec, env=env).stdout == b"kept\n"
        )
        assert (home / "file").read_text() == "kept\n"

    def test_a_home_is_empty_and_gone_at_the_end_where_none_is_given(self, tmp_path: Path) -> None:
        """What one command leaves there is not the next one's."""
        env = {"PATH": PATH, "HOME": str(HOME), "TMPDIR": "/tmp"}  # noqa: S108
        script = "ls -A $HOME $TMPDIR | grep left; echo left > $HOME/left && echo left > $TMPDIR/left && echo written"
        for _ in range(2):
            assert self.play(tmp_path, ("sh", "-c", script), env=env).stdout == b"written\n"

    def test_other_files_of_the_host_are_not_there(self, tmp_path: Path) -> None:
        """State, keys, other trees, other people."""
        self.needs_walls()
        secret = folder(tmp_path / "state") / "key"
        secret.write_text("secret")
        secret.chmod(0o666)
        (self.tree(tmp_path) / "link").symlink_to(secret)
        code = (
            "import os, sys\nfor p in sys.argv[1:]:\n"
            "  print(os.path.exists(p) and (os.path.isfile(p) or bool(os.listdir(p))))"
        )
        places = (str(secret), "link", "/etc/shadow", "/etc/ssh", "/run", "/sys", "/boot", "/proc/1/root/etc/shadow")
        end = self.play(tmp_path, python(code, *places))
        assert end.stdout.split() == [b"False"] * len(places), end

    def test_the_system_can_t_be_written(self, tmp_path: Path) -> None:
        """Not even what only this sandbox would see: a tool must not find a place to put things for the next one."""
        self.needs_walls()
        tops = "/ /usr /usr/local/bin /etc /bin /dev /home /root"
        end = self.play(tmp_path, ("sh", "-c", f"for d in {tops}; do touch $d/x 2>/dev/null && echo $d; done; true"))
        assert end.stdout == b""
