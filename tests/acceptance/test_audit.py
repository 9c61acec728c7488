"""The audit and the secrets from the command line: exit codes, one document on standard output, nothing secret."""

from __future__ import annotations

from pathlib import Path

from bailiwick.audit.file import chain_file, head_file
from bailiwick.audit.service import append
from bailiwick.clock import ManualClock
from tests.acceptance.command import Person


def recorded(person: Person, count: int) -> Path:
    """A person's audit with some entries; gives its file."""
    clock = ManualClock()
    for number in range(count):
        clock.advance(60)
        append(person.home / "state", "gate.report", {"number": number}, actor="ann", clock=clock)
    return chain_file(person.home / "state")


def test_a_fresh_machine_has_an_empty_consistent_audit(person: Person) -> None:
    """Whoever looks first gets an answer, not an error."""
    result = person.runs("audit", "verify", "--json")
    assert (result.code, result.json()["entries"], result.json()["anchored"]) == (0, 0, False)
    assert person.runs("audit", "show").out == "no entries\n"
    assert not (person.home / "state").exists()


def test_meddling_with_the_record_is_found_and_exits_1(person: Person) -> None:
    """The one question of an auditor, and it fits a cron job."""
    file = recorded(person, 3)
    assert person.runs("audit", "verify").out.startswith("chain consistent, not anchored: 3 entries\n")
    file.write_bytes(file.read_bytes().replace(b'"number":1', b'"number":7'))
    result = person.runs("audit", "verify")
    assert (result.code, result.out) == (1, "")
    assert "edited: line 2: entry 2 was changed" in result.err


def test_an_exported_head_finds_what_the_chain_alone_can_not(person: Person) -> None:
    """The end is cut off and the local head with it: only what was kept elsewhere remembers."""
    file = recorded(person, 3)
    kept = person.cwd / "head.txt"
    assert person.runs("audit", "export", "--head", kept).code == 0
    assert kept.read_text() == person.runs("audit", "export", "--head").out
    file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:2]))
    head_file(person.home / "state").unlink()
    assert person.runs("audit", "verify").code == 0
    result = person.runs("audit", "verify", "--against", kept, "--json")
    assert (result.code, [finding["kind"] for finding in result.json()["findings"]]) == (1, ["truncated"])
    before = kept.read_bytes()
    assert (person.runs("audit", "export", "--head", kept).code, kept.read_bytes()) == (1, before)


def test_a_wrong_anchor_is_a_usage_error(person: Person) -> None:
    """Exit 2, and never `anchored`."""
    recorded(person, 1)
    result = person.runs("audit", "verify", "--against", "nonsense")
    assert (result.code, result.out) == (2, "")
    assert "BW493" in result.err


def test_secrets_check_tells_what_is_missing_and_shows_no_value(person: Person) -> None:
    """Run before a night: exit 8 until every reference resolves."""
    (person.home / "config").mkdir(parents=True)
    config = "credentials: {work: {backend: claude, token: '${secret:env:WORK_KEY}'}}\n"
    (person.home / "config" / "config.yaml").write_text(config)
    result = person.runs("secrets", "check")
    assert (result.code, "BW263" in result.out) == (8, True)
    person.extra["WORK_KEY"] = "sk-work-123456"
    result = person.runs("secrets", "check", "--json")
    assert (result.code, result.json()["ok"]) == (0, True)
    assert "sk-work" not in result.out + result.err
