"""The audit on disk: durable before the action, whole after a crash, and nothing done to it goes unseen."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bailiwick.audit.file import AuditUnavailable, chain_file, head_file, key_file
from bailiwick.audit.model import ChainHead
from bailiwick.audit.service import anchor_of, append, entries, export, verify
from bailiwick.clock import ManualClock
from bailiwick.errors import UsageError
from bailiwick.redaction.redact import Redactor
from tests.unit.audit.chains import Chain

APPEND = """
import sys
from pathlib import Path
from bailiwick.audit.service import append
from bailiwick.clock import ManualClock
for turn in range(int(sys.argv[3])):
    append(Path(sys.argv[1]), "test.many", {"who": sys.argv[2], "turn": turn}, actor=sys.argv[2], clock=ManualClock())
"""
FULL = """
import resource, sys
from pathlib import Path
from bailiwick.audit.file import AuditUnavailable
from bailiwick.audit.service import append
from bailiwick.clock import ManualClock
state, size = Path(sys.argv[1]), int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
try:
    append(state, "test.full", "x" * 300, actor="a", clock=ManualClock())
except AuditUnavailable as error:
    print(error.code)
"""


def test_an_entry_is_on_disk_when_append_returns_and_follows_the_one_before(chain: Chain) -> None:
    """Whoever acts after it can rely on it."""
    one, two = chain.add(2)
    assert (one.seq, two.seq, two.prev) == (1, 2, one.mac)
    assert chain.lines() == [one.line(), two.line()]
    assert (two.kind, two.actor, two.data, two.time) == ("test.done", "ann", {"number": 2}, 1_700_000_002.0)
    assert chain.verdict().head == two.head


def test_only_the_owner_can_read_the_chain_and_its_key(chain: Chain) -> None:
    """Whoever reads the key can write a chain of their own."""
    chain.add()
    modes = [path.stat().st_mode & 0o777 for path in (chain.path, key_file(chain.state), head_file(chain.state))]
    assert modes == [0o600, 0o600, 0o600]
    assert chain.path.parent.stat().st_mode & 0o777 == 0o700
    assert len(key_file(chain.state).read_bytes()) == 32


def test_fifty_processes_append_at_once_and_no_line_is_lost_or_torn(chain: Chain) -> None:
    """Every surface writes to the same file: workers, the service, commands. The key too is made once."""
    source = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    started = [
        subprocess.Popen([sys.executable, "-c", APPEND, str(chain.state), str(number), "4"], env=source)
        for number in range(50)
    ]
    assert [process.wait(600) for process in started] == [0] * 50
    verdict = chain.verdict()
    assert (verdict.ok, verdict.head.count, verdict.unfinished) == (True, 200, 0)
    told = {(entry.actor, entry.data["turn"]) for entry in entries(chain.state)}
    assert told == {(str(number), turn) for number in range(50) for turn in range(4)}


def test_half_a_line_from_a_crash_is_taken_off_and_the_chain_says_so(chain: Chain) -> None:
    """Cut anywhere, the entry that nobody was told of goes, every other one stays, and the next append works."""
    chain.add(2)
    before = chain.path.read_bytes()
    known = head_file(chain.state).read_bytes()
    (third,) = chain.add()
    whole = third.line()
    for cut in (1, 2, len(whole) // 2, len(whole) - 2):
        chain.path.write_bytes(before + whole[:cut])
        head_file(chain.state).write_bytes(known)
        assert (chain.verdict().ok, chain.verdict().unfinished) == (True, cut)
        chain.add()
        kinds = [(entry.kind, entry.data) for entry in entries(chain.state)[2:]]
        assert kinds[0] == ("audit.repaired", {"bytes": cut})
        assert [kind for kind, _ in kinds] == ["audit.repaired", "test.done"]
        assert chain.path.read_bytes().startswith(before)
        assert (chain.verdict().ok, chain.verdict().unfinished) == (True, 0)


def test_a_whole_line_that_only_lacks_its_end_is_kept(chain: Chain) -> None:
    """It may have been synced: to take it off could lose what somebody acted on."""
    chain.add(3)
    chain.path.write_bytes(chain.path.read_bytes()[:-1])
    chain.add()
    assert [entry.seq for entry in entries(chain.state)] == [1, 2, 3, 4]
    assert chain.verdict().ok


def test_nothing_is_appended_to_a_chain_whose_end_is_not_as_it_was_left(chain: Chain) -> None:
    """To go on would make the cut look like the truth; the half line stays as evidence."""
    chain.add(3)
    lines = chain.lines()
    for left in (b"".join(lines[:2]), b"".join(lines)[:-10], b"", b"".join([*lines[:2], lines[2][:-3] + b'0"}\n'])):
        chain.path.write_bytes(left)
        with pytest.raises(AuditUnavailable) as caught:
            chain.add()
        assert caught.value.code in ("BW491", "BW492")
        assert chain.path.read_bytes() == left
    chain.path.unlink()
    assert chain.kinds() == ["truncated"]


def test_what_is_done_to_the_file_is_found_without_any_head(chain: Chain) -> None:
    """Edit, delete, insert and reorder break the chain by themselves."""
    chain.add(4)
    one, two, three, four = chain.lines()
    chain.write([one, two.replace(b'"ann"', b'"bob"'), three, four])
    assert chain.kinds() == ["edited"]
    chain.write([one, three, four])
    assert chain.kinds() == ["deleted"]
    chain.write([one, b"{}\n", two, three, four])
    assert chain.kinds() == ["inserted"]
    chain.write([two, one, three, four])
    assert chain.kinds() == ["moved"]
    chain.write([one, two, three, four])
    assert chain.kinds() == []


def test_a_cut_and_a_chain_written_anew_are_found_by_an_exported_head(chain: Chain) -> None:
    """Whoever holds the key can make a consistent chain; only what was kept elsewhere shows it."""
    kept = chain.add(3)[-1].head
    lines = chain.lines()
    chain.write(lines[:2])
    assert (chain.verdict().ok, chain.verdict().anchored) == (True, False)
    assert [finding.kind for finding in verify(chain.state, kept).findings] == ["truncated"]
    chain.add(2)
    assert chain.verdict().ok
    again = verify(chain.state, kept)
    assert ([finding.kind for finding in again.findings], again.anchored) == (["rewritten"], True)
    chain.write(lines)
    chain.add()
    assert (verify(chain.state, kept).ok, verify(chain.state, kept).head.count) == (True, 4)


def test_a_cut_is_noticed_at_once_where_the_local_head_is_still_there(chain: Chain) -> None:
    """A restored backup or a slip of the hand needs no exported head to be seen."""
    chain.add(3)
    chain.path.write_bytes(b"".join(chain.lines()[:2]))
    assert chain.kinds() == ["truncated"]
    with pytest.raises(AuditUnavailable):
        chain.add()


def test_another_key_and_a_lost_key_are_told(chain: Chain) -> None:
    """A new key is never made beside old entries: it could not vouch for them."""
    chain.add(2)
    key = key_file(chain.state)
    mine = key.read_bytes()
    key.write_bytes(b"x" * 32)
    assert chain.kinds() == ["wrong_key"]
    with pytest.raises(AuditUnavailable):
        chain.add()
    key.unlink()
    assert chain.kinds() == ["wrong_key"]
    with pytest.raises(AuditUnavailable) as caught:
        chain.add()
    assert caught.value.code == "BW492"
    assert not key.exists()
    key.touch(0o600)
    key.write_bytes(mine)
    assert chain.kinds() == []


@pytest.mark.parametrize(("mode", "content"), [(0o644, b"x" * 32), (0o600, b"short"), (0o600, b"x" * 33)])
def test_a_key_that_others_can_read_or_that_is_none_is_refused(chain: Chain, mode: int, content: bytes) -> None:
    """What it seals would prove nothing."""
    key = key_file(chain.state)
    key.parent.mkdir(parents=True)
    key.write_bytes(content)
    key.chmod(mode)
    with pytest.raises(AuditUnavailable) as caught:
        chain.add()
    assert (caught.value.code, caught.value.exit_code) == ("BW492", 8)
    assert chain.path.read_bytes() == b""


def test_a_full_disk_leaves_the_chain_as_it_was_and_the_action_does_not_happen(chain: Chain) -> None:
    """The write stops half way: the half is taken back and the caller is told with BW490."""
    chain.add(2)
    before = chain.path.read_bytes()
    source = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", FULL, str(chain.state), str(len(before) + 100)]
    done = subprocess.run(command, env=source, capture_output=True, text=True, check=True, timeout=600)
    assert (done.stdout, chain.path.read_bytes()) == ("BW490\n", before)
    chain.add()
    assert [entry.kind for entry in entries(chain.state)] == ["test.done"] * 3


def test_an_audit_that_is_no_plain_file_is_refused(chain: Chain, tmp_path: Path) -> None:
    """A link would let somebody else's file be written, a pipe would hang."""
    chain.path.parent.mkdir(parents=True)
    (tmp_path / "elsewhere").write_bytes(b"")
    chain.path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(AuditUnavailable):
        chain.add()
    chain.path.unlink()
    os.mkfifo(chain.path)
    with pytest.raises(AuditUnavailable):
        chain.add()
    assert (tmp_path / "elsewhere").read_bytes() == b""


def test_a_state_directory_that_can_not_be_made_is_the_audits_error(tmp_path: Path) -> None:
    """Callers catch one error; whatever the reason, the action does not happen."""
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(AuditUnavailable) as caught:
        append(tmp_path / "file" / "state", "k", None, actor="a", clock=ManualClock())
    assert (caught.value.code, caught.value.exit_code) == ("BW490", 8)


def test_an_entry_that_is_too_long_is_refused_and_nothing_written(chain: Chain) -> None:
    """The audit holds digests; a reader has to be able to bound a line."""
    chain.add()
    before = chain.path.read_bytes()
    with pytest.raises(AuditUnavailable):
        append(chain.state, "k", "x" * (1 << 20), actor="a", clock=chain.clock)
    assert chain.path.read_bytes() == before


def test_known_secrets_and_half_characters_do_not_get_in(chain: Chain) -> None:
    """The record is kept for ever and handed around; and no file can hold half a character."""
    cover = Redactor(["hunter2-secret"])
    data = {"text": "pw hunter2-secret \ud800", "hunter2-secret": ["aHVudGVyMi1zZWNyZXQ="]}
    made = append(chain.state, "k", data, actor="hunter2-secret", clock=chain.clock, redactor=cover)
    assert b"hunter2" not in chain.path.read_bytes()
    assert made.data == {"text": "pw [redacted] ?", "[redacted]": ["[redacted]"]}
    assert chain.verdict().ok


def test_entries_are_found_by_kind_and_its_beginning_from_the_end(chain: Chain) -> None:
    """`--kind gate` means gate.report too, but not gateway."""
    for kind in ("gate.report", "gateway.up", "gate", "proposal.made"):
        chain.add(kind=kind)
    assert [entry.kind for entry in entries(chain.state, kind="gate")] == ["gate.report", "gate"]
    assert [entry.seq for entry in entries(chain.state, limit=2)] == [3, 4]
    assert entries(chain.state / "nowhere") == []


def test_an_empty_chain_is_consistent_and_makes_nothing(tmp_path: Path) -> None:
    """A look at a fresh machine leaves no trace."""
    verdict = verify(tmp_path / "state")
    assert (verdict.ok, verdict.head) == (True, ChainHead())
    assert list(tmp_path.iterdir()) == []


def test_an_export_holds_entries_and_head_and_anchors_later(chain: Chain, tmp_path: Path) -> None:
    """Taken elsewhere on a schedule, it convicts whoever writes the chain again afterwards."""
    made = chain.add(3)
    full, short = tmp_path / "full.jsonl", tmp_path / "head.txt"
    assert export(chain.state, full).ok
    assert export(chain.state, short, head_only=True).ok
    assert full.read_bytes() == b"".join(entry.line() for entry in made) + f'{{"head":"{made[-1].head}"}}\n'.encode()
    assert short.read_text() == f"{made[-1].head}\n"
    assert anchor_of(str(full)) == anchor_of(str(short)) == anchor_of(str(made[-1].head)) == made[-1].head
    chain.add()
    assert export(chain.state, short, head_only=True).ok
    assert anchor_of(str(short)).count == 4


def test_an_export_never_overwrites_the_anchor_that_convicts_the_chain(chain: Chain, tmp_path: Path) -> None:
    """A scheduled export after the meddling would destroy the only proof."""
    chain.add(3)
    short = tmp_path / "head.txt"
    export(chain.state, short, head_only=True)
    kept = short.read_bytes()
    chain.write(chain.lines()[:2])
    chain.add()
    assert [finding.kind for finding in export(chain.state, short, head_only=True).findings] == ["rewritten"]
    assert short.read_bytes() == kept
    chain.write([chain.lines()[0], b"x\n", *chain.lines()[2:]])
    assert not export(chain.state, tmp_path / "new").ok
    assert not (tmp_path / "new").exists()


def test_a_file_without_a_head_is_neither_believed_nor_overwritten(chain: Chain, tmp_path: Path) -> None:
    """A slip in the name must not cost a file, nor pass for an anchor."""
    chain.add()
    other = tmp_path / "notes.txt"
    other.write_text("mine\n")
    for given in (str(other), str(tmp_path / "none"), "a\0b"):
        with pytest.raises(UsageError) as caught:
            anchor_of(given)
        assert caught.value.code == "BW493"
    with pytest.raises(UsageError):
        export(chain.state, other)
    assert other.read_text() == "mine\n"
    with pytest.raises(UsageError) as refused:
        export(chain.state, tmp_path / "no" / "such" / "place")
    assert refused.value.code == "BW494"


def test_a_line_that_never_ends_is_refused_in_bounded_memory(chain: Chain) -> None:
    """Something else wrote into the file: it is not taken for the half line of a crash."""
    chain.add()
    with chain.path.open("ab") as stream:
        stream.truncate(stream.tell() + (4 << 20))
    size = chain_file(chain.state).stat().st_size
    with pytest.raises(AuditUnavailable) as caught:
        chain.add()
    assert (caught.value.code, chain.path.stat().st_size) == ("BW491", size)
