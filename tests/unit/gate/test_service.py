"""A whole gate, from a tree to a report that is kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bailiwick.audit.service import entries
from bailiwick.gate.model import GateReport
from bailiwick.gate.report import failing_text, load_report, signature
from bailiwick.gate.service import GateInterrupted, GateRequest, base_report
from bailiwick.git.store import GitStore
from bailiwick.ids import canonical, digest
from tests.unit.gate.gate_stage import GateSetup, make_stage, spec_of

TESTS = (
    "import unittest\nfrom app import x\nclass T(unittest.TestCase):\n    def test_x(self): self.assertEqual(x, {})\n"
)
GATE = 'checks: [{name: tests, run: [python3, -B, -m, unittest, discover, -s, tests, -t, ., -p, "test_*.py"]}]\n'


@pytest.fixture
def stage(tmp_path: Path) -> GateSetup:
    made = make_stage(tmp_path)
    made.scene.commit({"app.py": "x = 1\n", "tests/test_app.py": TESTS.format(1), "tests/__init__.py": ""})
    return made


def test_a_good_change_is_green_and_its_report_is_kept_and_audited(stage: GateSetup) -> None:
    """The report is the evidence of a proposal: it has to be found again, unchanged, and to be in the audit."""
    report = stage.check({"app.py": "x = 1  # better\n"}, spec_of(GATE))
    assert report.verdict == "green"
    assert (report.sandbox, report.policy) == ("none", digest(canonical([spec_of(GATE).digest, ""])))
    assert load_report(stage.places.state, report.digest[:16]).to_json() == report.to_json()
    told = entries(stage.places.state, kind="gate.report")
    assert [entry.data["report"] for entry in told] == [report.digest]
    assert list(stage.scratch.iterdir()) == []


def test_a_bad_change_is_red_and_the_agent_is_told_why(stage: GateSetup) -> None:
    """The bounded output is all that an agent gets to repair its work."""
    report = stage.check({"app.py": "x = 2\n"}, spec_of(GATE))
    assert report.verdict == "red"
    assert report.checks[0].hint == "the check exits with 1 here and succeeds on the base"
    text = failing_text(report)
    assert "'tests' is red (exit code 1)" in text
    assert "AssertionError: 2 != 1" in text


def test_what_is_tested_is_what_is_proposed(stage: GateSetup) -> None:
    """An agent that deletes the test or bends it is judged by the base's, and what it tried is listed."""
    report = stage.check({"app.py": "x = 2\n", "tests/test_app.py": None, "Makefile": "x:\n"}, spec_of(GATE))
    assert report.verdict == "red"
    assert [(t.path, t.change) for t in report.taken] == [("Makefile", "added"), ("tests/test_app.py", "deleted")]
    assert "tests/test_app.py (deleted; tests/**)" in failing_text(report)
    assert report.tree != report.asked


def test_every_check_runs_in_a_tree_of_its_own_even_if_the_first_fails(stage: GateSetup) -> None:
    """One run tells all that is wrong, and no check can leave something behind for the next."""
    spec = spec_of("""
checks:
  - {name: a, run: [sh, -c, "test ! -e left && touch left && exit 3"]}
  - {name: b, run: [sh, -c, "test ! -e left && touch left"]}
  - {name: c, run: [nonesuch, --version]}
""")
    report = stage.check({"app.py": "x = 3\n"}, spec)
    assert [(c.name, c.outcome, c.code) for c in report.checks] == [
        ("a", "red_on_base", 3),
        ("b", "passed", 0),
        ("c", "failed", 127),
    ]
    assert "nonesuch" in report.checks[2].hint
    assert report.checks[2].findings[0].code == "missing-tool"


def test_output_is_bounded_and_safe_to_show(stage: GateSetup) -> None:
    """What a program prints ends up in reports, terminals and prompts: it must not act there, nor fill the disk."""
    script = "import sys; print('\\x1b[2Jhidden'); print('    indented'); print('y' * 99 + '\\n', end='') or 0\n"
    script += "for i in range(3000): print(i, 'z' * 60)\nsys.exit(1)\n"
    stage.scene.commit({"scripts/noise.py": script})
    report = stage.check({"app.py": "x = 3\n"}, spec_of("checks: [{name: a, run: [python3, scripts/noise.py]}]"))
    output = report.checks[0].output
    assert len(output) < 70_000
    assert "\x1b" not in output
    assert output.startswith("… ")
    assert "2999 zzz" in output
    assert len(failing_text(report)) < 25_000


def test_a_red_base_is_red_unless_a_person_named_what_may_stay_red(stage: GateSetup) -> None:
    """A red base must not pass for green, nor be blamed on the change."""
    spec = spec_of("checks: [{name: lint, run: [sh, -c, 'echo bad; exit 1']}]")
    report = stage.check({"app.py": "x = 3\n"}, spec)
    assert (report.verdict, report.checks[0].outcome, report.failing) == ("red", "red_on_base", ())
    assert stage.check({"app.py": "x = 3\n"}, spec, known_red=("lint",)).verdict == "green"


def test_a_tool_that_fails_on_the_base_too_is_the_environment_s_fault(stage: GateSetup) -> None:
    """Nothing was found out about the change: no attempt is used up, and the agent is not told."""
    spec = spec_of("checks: [{name: a, run: [sh, -c, nonesuch]}]")
    report = stage.check({"app.py": "x = 3\n"}, spec)
    assert report.verdict == "environment"
    assert "a: " in failing_text(report)


def test_a_check_that_takes_too_long_is_ended(stage: GateSetup) -> None:
    """A hanging test must not hang the night."""
    spec = spec_of("checks: [{name: a, run: [sh, -c, 'grep -q 2 app.py && exec sleep 600; true'], timeout: 1s}]")
    report = stage.check({"app.py": "x = 2\n"}, spec)
    assert (report.verdict, report.checks[0].outcome) == ("red", "failed")
    assert "ran out of time" in report.checks[0].hint


def test_an_allowed_change_is_checked_both_with_and_without(stage: GateSetup) -> None:
    """A person who lets a test change through sees what it changes."""
    edit: dict[str, str | None] = {"app.py": "x = 2\n", "tests/test_app.py": TESTS.format(2)}
    report = stage.check(edit, spec_of(GATE), allow=("tests/test_app.py",))
    assert report.verdict == "green"
    assert [(t.path, t.allowed) for t in report.taken] == [("tests/test_app.py", True)]
    assert [c.outcome for c in report.checks] == ["passed"]
    assert [c.outcome for c in report.without] == ["failed"]
    assert [c.outcome for c in load_report(stage.places.state, report.digest).without] == ["failed"]


def test_a_gate_that_is_red_only_in_wanted_tests_needs_a_person(stage: GateSetup) -> None:
    """The issue may well ask for other behaviour: then a person decides on the exact hunk, the agent doesn't."""
    edit: dict[str, str | None] = {"app.py": "x = 2\n", "tests/test_app.py": TESTS.format(2)}
    report = stage.check(edit, spec_of(GATE))
    assert (report.verdict, report.wanted) == ("needs_person", ("tests/test_app.py",))
    assert "-    def test_x(self): self.assertEqual(x, 1)" in report.taken[0].patch
    bent: dict[str, str | None] = {"app.py": "x = 2\n", "tests/test_app.py": TESTS.format(3)}
    assert stage.check(bent, spec_of(GATE)).verdict == "red"


def test_an_agent_may_ask_for_what_was_taken_out(stage: GateSetup) -> None:
    """If the issue needs a protected change, the run parks instead of proposing half of it."""
    edit: dict[str, str | None] = {"app.py": "x = 1 \n", "pyproject.toml": "[project]\n"}
    report = stage.check(edit, spec_of(GATE), wanted=("pyproject.toml", "uv.lock"))
    assert (report.verdict, report.wanted) == ("needs_person", ("pyproject.toml",))
    assert stage.check(edit, spec_of(GATE)).verdict == "green"


def test_a_script_of_the_repository_that_a_check_runs_can_t_be_bent(stage: GateSetup) -> None:
    """`run: [./check.sh]` makes that script part of the gate, listed or not."""
    stage.scene.commit({"check.sh": "#!/bin/sh\ngrep -q 'x = 1' app.py\n"})
    spec = spec_of("checks: [{name: a, run: [sh, ./check.sh]}]")
    report = stage.check({"app.py": "x = 2\n", "check.sh": "exit 0\n"}, spec)
    assert report.verdict == "red"
    assert [(t.path, t.rule) for t in report.taken] == [("check.sh", "check.sh")]


def test_a_failing_prepare_is_the_environment_s_fault_and_nothing_is_checked(stage: GateSetup) -> None:
    """A registry that is down says nothing about the change."""
    spec = spec_of("prepare: [[sh, -c, 'echo no network >&2; exit 4']]\n" + GATE)
    report = stage.check({"app.py": "x = 2\n"}, spec)
    assert report.verdict == "environment"
    assert [c.name for c in report.checks] in (["prepare"], ["tests"])
    assert "no network" in report.checks[0].output
    assert "exits with 4" in failing_text(report)


def test_services_are_said_to_be_missing(stage: GateSetup) -> None:
    """A gate whose tests need a database must not pretend to have run them."""
    spec = spec_of("services: {db: {image: 'postgres:16'}}\n" + GATE)
    report = stage.check({"app.py": "x = 1 \n"}, spec)
    assert (report.verdict, report.checks[0].name) == ("environment", "services")


def test_an_interrupted_gate_leaves_nothing(stage: GateSetup) -> None:
    """Half a report would be worse than none."""
    spec = spec_of("checks: [{name: a, run: [sh, -c, 'exec sleep 600']}]")

    class Ends(list[str]):
        """Interrupts at the first word of progress."""

        def append(self, text: str) -> None:
            stage.cancel.set()
            super().append(text)

    stage.shown = Ends()

    async def history(git_store: GitStore) -> GateReport:
        base = await git_store.resolve("HEAD")
        tree = await git_store.write(await git_store.tree_of(base), {"app.py": b"x = 3\n"})
        return await stage.gate(git_store, GateRequest(base, tree), spec)

    with pytest.raises(GateInterrupted):
        stage.run(history)
    assert not (stage.places.state / "gates").exists()
    assert list(stage.scratch.iterdir()) == []


def test_the_gate_of_the_base_is_run_once_for_as_long_as_nothing_changes(stage: GateSetup, tmp_path: Path) -> None:
    """Preflight asks for it before every run; an hour of tests must not be run for each."""
    count = tmp_path / "count"
    spec = spec_of(f"checks: [{{name: a, run: [sh, -c, 'echo x >> {count}']}}]")

    async def history(git_store: GitStore) -> list[GateReport]:
        base = await git_store.resolve("HEAD")
        how = {"cancel": stage.cancel, "show": stage.shown.append, "clock": stage.clock}
        asked = [await base_report(base, spec, git_store, stage.sandboxes, stage.places, **how) for _ in range(2)]  # type: ignore[arg-type]
        other = spec_of(f"checks: [{{name: b, run: [sh, -c, 'echo x >> {count}']}}]")
        return [*asked, await base_report(base, other, git_store, stage.sandboxes, stage.places, **how)]  # type: ignore[arg-type]

    first, again, other = stage.run(history)
    assert first.digest == again.digest
    assert (first.verdict, other.checks[0].name) == ("green", "b")
    assert count.read_text() == "x\nx\n"


def test_the_same_failure_with_the_same_diff_has_the_same_signature(stage: GateSetup) -> None:
    """Trying the same again costs money: a loop ends early where nothing moves."""
    one, two = (stage.check({"app.py": "x = 2\n"}, spec_of(GATE)) for _ in range(2))
    other = stage.check({"app.py": "x = 3\n"}, spec_of(GATE))
    assert signature(one) == signature(two) != signature(other)


def test_a_report_that_was_changed_on_disk_is_not_believed(stage: GateSetup) -> None:
    """Whoever edits a kept report must not get it accepted under its old digest."""
    from bailiwick.errors import NotFound

    report = stage.check({"app.py": "x = 2\n"}, spec_of(GATE))
    file = stage.places.state / "gates" / f"{report.digest}.json"
    data = json.loads(file.read_text())
    file.write_text(json.dumps({**data, "verdict": "green"}))
    with pytest.raises(NotFound):
        load_report(stage.places.state, report.digest)
