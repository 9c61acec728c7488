"""The `gate` node: the files of a worktree in, a verdict with all that the next step needs out."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from bailiwick.clock import ManualClock
from bailiwick.config.service import Config, load_config
from bailiwick.config.variables import Environment
from bailiwick.engine.graph import Output, Work
from bailiwick.gate.nodes import OUTPUTS, GateKind
from bailiwick.ids import Json
from bailiwick.lang.delivery import GATE_FIELDS
from bailiwick.lang.templates import Templates
from bailiwick.processes.command import Command, Exit
from bailiwick.runtime.kinds import AttemptRequest, Done, Failed
from bailiwick.sandbox.service import Sandboxes
from tests.unit.gate.gate_stage import GateSetup, make_stage

GATE = """
checks: [{name: tests, run: [sh, -c, "grep -q good app.txt || { echo app.txt is not good; exit 1; }"]}]
protected: [tests/**]
"""
SPEC: dict[str, Json] = {
    "repository": "{{ repository }}", "tree": "{{ tree }}", "base": "{{ base }}", "allow": "{{ allow }}",
    "known_red": [], "wanted": ["{{ want }}"], "reason": "because {{ want }}",
}  # fmt: skip


@dataclass
class Witness:
    """What an attempt may do to the world, and what it told."""

    cancel: asyncio.Event = field(default_factory=asyncio.Event)
    lines: list[str] = field(default_factory=list)
    seen: list[dict[str, Json]] = field(default_factory=list)

    async def run(self, command: Command) -> Exit:
        raise AssertionError(command)

    def environment(self) -> dict[str, str]:
        return {}

    def show(self, text: str) -> None:
        self.lines.append(text)

    def observe(self, data: dict[str, Json]) -> None:
        self.seen.append(data)


@dataclass
class GateNodeSetup:
    """A repository with a gate, and a copy of it that an agent works in."""

    stage: GateSetup
    config: Config
    work: Path
    witness: Witness = field(default_factory=Witness)

    def attempt(self, outputs: tuple[str, ...] = (), **context: Json) -> Done | Failed:
        """Render the node and do it once."""
        known = {
            "repository": str(self.stage.scene.repo),
            "tree": str(self.work),
            "base": "HEAD",
            "allow": [],
            "want": "",
        } | context

        async def sandboxes() -> Sandboxes:
            return self.stage.sandboxes

        node = Work(id="gate", type="gate", spec=SPEC, outputs=tuple(Output(key) for key in outputs))
        kind = GateKind(self.config, ManualClock(), sandboxes)

        async def go() -> Done | Failed:
            self.witness.cancel = asyncio.Event()
            rendered = kind.prepare(node, known.__getitem__, Templates())
            return await kind.attempt(_request(node, rendered.value, self.work), self.witness)

        return asyncio.run(go())


def _request(node: Work, prepared: Json, here: Path) -> AttemptRequest:
    return AttemptRequest("r", "r", 1, "key", "", node, 1, 1, 1, 1, prepared, here, here, here)


@pytest.fixture
def desk(tmp_path: Path) -> GateNodeSetup:
    stage = make_stage(tmp_path)
    stage.scene.commit({".bailiwick/gate.yaml": GATE, "app.txt": "good\n", "tests/t.txt": "x\n"})
    names = {"BAILIWICK_HOME": str(tmp_path / "bw"), "HOME": str(stage.scene.home)}
    config = load_config(stage.scene.repo, {}, environment=Environment(names), machine=tmp_path / "etc")
    work = tmp_path / "work"
    stage.scene.git("worktree", "add", "-q", "--detach", str(work))
    return GateNodeSetup(stage, config, work)


def _done(result: Done | Failed) -> dict[str, Json]:
    assert isinstance(result, Done), result
    return result.outputs


def test_a_green_tree_gives_a_verdict_and_its_report(desk: GateNodeSetup) -> None:
    """The graph decides by the verdict; the proposal needs the report's digest and the tree that was checked."""
    (desk.work / "app.txt").write_text("good, better\n")
    made = _done(desk.attempt())
    assert set(made) == set(OUTPUTS)
    assert (made["verdict"], made["failing"], made["wanted"]) == ("green", "", [])
    assert made["report"]["tree"] == made["tree_id"]
    assert (desk.config.paths.state / "gates" / f"{made['digest']}.json").is_file()
    told = {"told": "green; no test shows this fix", "good": True, "lines": []}
    assert desk.witness.seen == [{"verdict": "green", "report": made["digest"], "tree": made["tree_id"], **told}]


def test_a_red_tree_is_no_failure_of_the_node(desk: GateNodeSetup) -> None:
    """Red is an answer: the next step is the graph's to choose, with the bounded output at hand."""
    (desk.work / "app.txt").write_text("bad\n")
    made = _done(desk.attempt(("verdict", "failing", "signature", "unknown")))
    assert set(made) == {"verdict", "failing", "signature", "unknown"}
    assert (made["verdict"], made["unknown"]) == ("red", None)
    assert "app.txt is not good" in made["failing"]
    assert made["signature"] == _done(desk.attempt(("signature",)))["signature"]


def test_files_that_git_does_not_know_yet_count_and_ignored_ones_do_not(desk: GateNodeSetup) -> None:
    """Only files count, not what the agent committed or says."""
    (desk.work / "new.txt").write_text("new\n")
    (desk.work / "noise.log").write_text("ignored\n")
    made = _done(desk.attempt(("report",)))
    (desk.work / "new.txt").unlink()
    assert made["report"]["tree"] != _done(desk.attempt(("report",)))["report"]["tree"]


def test_what_the_agent_wants_parks_the_run_with_its_reason(desk: GateNodeSetup) -> None:
    """A person decides on the hunk with the agent's reason beside it."""
    (desk.work / "tests/t.txt").write_text("y\n")
    made = _done(desk.attempt(want="tests/t.txt"))
    assert (made["verdict"], made["wanted"]) == ("needs_person", ["tests/t.txt"])
    assert made["report"]["reason"] == "because tests/t.txt"
    assert _done(desk.attempt(want="tests/t.txt", allow=["tests/**"]))["verdict"] == "green"


@pytest.mark.parametrize(
    ("context", "words"),
    [
        ({"tree": "/nowhere/at/all"}, "there is no directory"),
        ({"base": "no-such-branch"}, "no-such-branch"),
        ({"repository": "/proc"}, "git"),
    ],
)
def test_what_can_t_be_checked_is_a_failure_with_a_reason(
    desk: GateNodeSetup, context: dict[str, Json], words: str
) -> None:
    """The engine tells people what is missing instead of calling the change red."""
    result = desk.attempt(**context)
    assert isinstance(result, Failed)
    assert result.failure.kind == "not_ready"
    assert words in result.failure.message


def test_a_bad_gate_file_is_a_failure_at_its_place(tmp_path: Path, desk: GateNodeSetup) -> None:
    """A gate that can't be read must never count as passed."""
    desk.stage.scene.commit({".bailiwick/gate.yaml": "checks: 3\n"})
    result = desk.attempt()
    assert isinstance(result, Failed)
    assert "a list of checks" in result.failure.message


def test_a_failing_environment_is_a_verdict_with_the_tool_s_own_words(desk: GateNodeSetup) -> None:
    """The graph parks and asks a person; it is no failure of the node, and nothing for the agent."""
    desk.stage.scene.commit({".bailiwick/gate.yaml": "prepare: [[sh, -c, 'echo no registry >&2; exit 3']]\n" + GATE})
    made = _done(desk.attempt())
    assert made["verdict"] == "environment"
    assert "no registry" in made["failing"]


def test_the_node_reads_exactly_the_fields_that_the_language_has() -> None:
    """A field that nothing reads would be a promise that nobody keeps."""
    from bailiwick.gate import nodes

    assert {field.name for field in GATE_FIELDS} == {*nodes._TEXTS, *nodes._LISTS}
