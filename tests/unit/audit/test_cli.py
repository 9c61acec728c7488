"""`bailiwick audit` as a person meets it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from bailiwick.audit.service import append
from bailiwick.cli.commands.audit import audit
from bailiwick.clock import ManualClock
from bailiwick.errors import UsageError
from tests.unit.audit.chains import Chain


@pytest.fixture
def chain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Chain:
    """The chain of the person whose home this is."""
    monkeypatch.setenv("BAILIWICK_HOME", str(tmp_path))
    return Chain(tmp_path / "state", ManualClock())


def run(*words: str | Path) -> tuple[object, str, str]:
    """The exit code, what was said and what was complained."""
    with CliRunner().isolation() as streams:
        code = audit.main([str(word) for word in words], standalone_mode=False)
        return code, streams[0].getvalue().decode(), streams[1].getvalue().decode()


def test_verify_says_whether_the_chain_is_anchored(chain: Chain) -> None:
    """Consistent is less than anchored, and the person has to know which of the two they have."""
    head = chain.add(2)[-1].head
    code, said, _ = run("verify")
    assert code == 0
    assert "chain consistent, not anchored: 2 entries" in said
    assert f"head: {head}" in said
    code, said, _ = run("verify", "--against", str(head))
    assert (code, said.splitlines()[0]) == (0, "chain consistent, anchored: 2 entries")


def test_verify_fails_with_what_was_found(chain: Chain) -> None:
    """Exit 1, the line, and what to do with it."""
    chain.add(3)
    lines = chain.lines()
    chain.write([lines[0], lines[1].replace(b"ann", b"bob"), lines[2]])
    code, said, complained = run("verify")
    assert (code, said) == (1, "")
    assert "edited: line 2: entry 2 was changed" in complained
    code, said, _ = run("verify", "--json")
    document = json.loads(said)
    assert (code, document["ok"], document["head"], document["findings"][0]["kind"]) == (1, False, None, "edited")


def test_verify_tells_of_an_unfinished_line(chain: Chain) -> None:
    """A crash is no tampering, but it is not hidden either."""
    chain.add()
    with chain.path.open("ab") as stream:
        stream.write(b"half")
    code, said, _ = run("verify")
    assert code == 0
    assert "4 bytes of an unfinished line" in said


def test_show_prints_the_last_entries_without_acting_on_the_terminal(chain: Chain) -> None:
    """Actors and data quote other people's texts."""
    chain.add(3)
    append(chain.state, "gate.report", "a\x1b[31mb", actor="eve\x1b]0;x\x07", clock=chain.clock)
    _, said, _ = run("show", "--limit", "2")
    assert [line.split()[0] for line in said.splitlines()] == ["3", "4"]
    assert "\x1b" not in said
    _, said, _ = run("show", "--kind", "gate", "--json")
    assert [entry["seq"] for entry in json.loads(said)["entries"]] == [4]
    _, said, _ = run("show", "--kind", "nothing")
    assert said == "no entries of this kind\n"


def test_export_writes_a_file_or_standard_output(chain: Chain, tmp_path: Path) -> None:
    """A pipe to elsewhere is as good as a file on a mount."""
    made = chain.add(2)
    _, said, _ = run("export", "--head")
    assert said == f"{made[-1].head}\n"
    _, said, _ = run("export")
    assert [json.loads(line).get("seq") for line in said.splitlines()] == [1, 2, None]
    target = tmp_path / "kept.jsonl"
    code, _, _ = run("export", target)
    assert (code, run("verify", "--against", target)[0]) == (0, 0)
    chain.write(chain.lines()[:1])
    code, said, complained = run("export", target)
    assert (code, said) == (1, "")
    assert "truncated" in complained
    assert "nothing was written" in complained


@pytest.mark.usefixtures("chain")
def test_against_something_that_is_no_head_is_a_usage_error() -> None:
    """A typing error must not pass for `anchored`."""
    with pytest.raises(UsageError) as caught:
        run("verify", "--against", "bw-audit:1:2:abc")
    assert caught.value.exit_code == 2
