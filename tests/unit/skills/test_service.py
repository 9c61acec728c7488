"""A tool's call: arguments checked, the project inside its roots, a task made, the router asked, the outcome told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pytest

from bailiwick.brain.model import FoundNote, Note
from bailiwick.clock import ManualClock
from bailiwick.config.service import load_config
from bailiwick.errors import BailiwickError, NotFound, NotReady, UsageError
from bailiwick.ids import Json
from bailiwick.journal.port import Store
from bailiwick.journal.sqlite import SqliteStore
from bailiwick.routing.call_log import append_call
from bailiwick.routing.model import FileOut, Job, Outcome, Result
from bailiwick.routing.models_file import Models
from bailiwick.routing.port import CallFiles
from bailiwick.skills.calling import Caller
from bailiwick.skills.service import Skills
from tests.unit.skills.skill_stage import ProjectSetup

Answer = Mapping[str, Json]


@dataclass(slots=True)
class Script:
    """Routes by the book: each answer goes through the bench, and what holds is kept."""

    answers: list[dict[str, Any]]
    jobs: list[Job] = field(default_factory=list)
    models: list[Models | None] = field(default_factory=list)

    async def call(
        self,
        job: Job,
        bench: CallFiles | None,
        *,
        show: Callable[[str], None],
        cancel: asyncio.Event,
        models: Models | None = None,
    ) -> Outcome:
        self.jobs.append(job)
        self.models.append(models)
        show("asking")
        made = {"status": "pass", "message": "done", **self.answers[len(self.jobs) - 1]}
        result = Result(phase=job.phase, skill=job.skill, **made)
        error = ""
        if bench is not None:
            await bench.begin()
            error = await bench.put(result.files)
            checked = await bench.check(result)
            error = error or checked.feedback
            result = replace(result, file_path=checked.file_path)
            error = error or await bench.keep()
        return Outcome(f"c-{len(self.jobs)}", result, "as the script says", error)


@dataclass(slots=True)
class FoundNotes:
    """Notes that are found whatever is asked for, and those that were filed."""

    found: list[Note] = field(default_factory=list)
    filed: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    asked: list[tuple[str, str, int]] = field(default_factory=list)

    async def query(self, text: str, scope: str, limit: int = 8) -> list[FoundNote]:
        self.asked.append((text, scope, limit))
        return [FoundNote(note) for note in self.found]

    async def write(self, text: str, **details: Any) -> Note:
        self.filed.append((text, details))
        return Note(f"n-{len(self.filed)}", details.get("title", ""), text)


@dataclass(slots=True)
class SkillsSetup:
    """Skills with everything around them made up."""

    stage: ProjectSetup
    router: Script
    shelf: FoundNotes = field(default_factory=FoundNotes)
    shown: list[str] = field(default_factory=list)

    def call(self, tool: str, arguments: Answer, **caller: Any) -> Outcome | dict[str, Json]:
        config = load_config(self.stage.top, {})
        skills = Skills(
            config=config,
            store=cast("Store", None),
            clock=ManualClock(),
            by="ann",
            router=self.router,
            sandboxes=self.stage.sandboxes,
            brain=lambda: cast("Any", self.shelf),
        )
        who: dict[str, Any] = {"roots": (self.stage.top,), "origin": "cli", **caller}

        async def history() -> Outcome | dict[str, Json]:
            return await skills.call(
                tool, arguments, Caller("ann", show=self.shown.append, cancel=asyncio.Event(), **who)
            )

        return asyncio.run(history())

    def outcome(self, tool: str, arguments: Answer, **caller: Any) -> Outcome:
        made = self.call(tool, arguments, **caller)
        assert isinstance(made, Outcome)
        return made

    def log(self, session: str, **entry: Json) -> None:
        append_call(self.stage.top / "home" / "state" / "sessions", {"session_id": session, **entry})

    @property
    def job(self) -> Job:
        return self.router.jobs[-1]


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SkillsSetup:
    """A project with a file, a home of our own, and a router that says what a test wants."""
    monkeypatch.setenv("BAILIWICK_HOME", str(tmp_path / "home"))
    stage = ProjectSetup(tmp_path)
    stage.write({"shop/cart.py": "one\ntwo\n", "tests/test_cart.py": "from shop.cart import x\n"})
    return SkillsSetup(stage, Script([{}, {}, {}]))


def finding(line: int) -> dict[str, Json]:
    return {"file": "shop/cart.py", "line": line, "severity": "minor", "title": "x"}


def test_a_review_is_routed_with_its_discipline_its_files_and_its_task(scene: SkillsSetup) -> None:
    """The task begins with the phase; its keys are the tool's arguments."""
    scene.router.answers[0] = {"findings": (finding(2),)}
    made = scene.outcome("review", {"project_root": "project", "files": ["shop"], "context": "new"}, origin="mcp")
    root = scene.stage.root
    assert made.error == ""
    assert scene.job.task == f"phase: review\nproject_root: {root}\nfiles: shop\ncontext: new"
    assert (scene.job.files, scene.job.root, scene.job.writes) == (("shop/cart.py",), str(root), False)
    assert (scene.job.by, scene.job.origin, scene.job.skill) == ("ann", "mcp", "review")
    assert "Iron laws" in scene.job.discipline
    assert scene.shown == ["asking"]


def test_red_is_told_what_there_is_in_the_project(scene: SkillsSetup) -> None:
    """A listing, the nearest test and the module; a model without tools reads both."""
    arguments = {"project_root": "project", "spec": "an empty cart costs nothing", "test_cmd": "true"}
    scene.outcome("tdd_red", arguments)
    told = "project_files: shop/cart.py\n  tests/test_cart.py\nnearest_test: tests/test_cart.py\nmodule: shop/cart.py"
    assert scene.job.task.endswith(told)
    assert scene.job.files == ("shop/cart.py", "tests/test_cart.py")


def test_red_never_replaces_a_test_that_is_there(scene: SkillsSetup) -> None:
    """What a model gives in its place stays out of the project."""
    before = (scene.stage.root / "tests/test_cart.py").read_bytes()
    scene.router.answers[0] = {"files": (FileOut("tests/test_cart.py", "def test_other():\n    assert x\n"),)}
    made = scene.outcome("tdd_red", {"project_root": "project", "spec": "carts", "test_cmd": "false"})
    assert "was there before" in made.error
    assert (scene.stage.root / "tests/test_cart.py").read_bytes() == before


def test_a_review_with_a_line_that_does_not_exist_is_refused(scene: SkillsSetup) -> None:
    """By looking, whatever the model says."""
    scene.router.answers[0] = {"findings": (finding(3),)}
    made = scene.outcome("review", {"project_root": "project", "files": ["shop/cart.py"]})
    assert "no line 3" in made.error


def test_a_specification_gets_a_place_if_it_has_none(scene: SkillsSetup) -> None:
    """And the document is in the project afterwards."""
    text = "# T\n" + "".join(
        f"## {name}\nx\n" for name in ("Purpose", "Scope", "Behaviour", "Acceptance criteria", "Open questions")
    )
    path = "docs/specs/carts-keep-their-items.md"
    scene.router.answers[0] = {"files": (FileOut(path, text),)}
    made = scene.outcome("spec", {"project_root": "project", "requirements": "Carts keep their items!"})
    assert made.error == ""
    assert f"output_path: {path}" in scene.job.task
    assert (scene.stage.root / path).read_text() == text
    assert made.result.file_path == str(scene.stage.root / path)


def test_debug_is_shown_the_files_of_the_trace(scene: SkillsSetup) -> None:
    """A model without tools has nothing else."""
    error = f'File "{scene.stage.root}/shop/cart.py", line 2'
    scene.outcome("debug", {"project_root": "project", "error": error})
    assert scene.job.files == ("shop/cart.py",)


@pytest.mark.parametrize(
    ("tool", "arguments", "why"),
    [
        ("review", {"project_root": "project"}, "files"),
        ("review", {"project_root": "project", "files": ["nothing.py"]}, "nothing.py is not in the project"),
        ("review", {"project_root": "project", "files": ["../x"]}, "files: "),
        ("review", {"project_root": "/etc", "files": ["passwd"]}, "roots"),
        ("review", {"project_root": "project", "files": ["shop"], "flies": 1}, "flies"),
        ("spec", {"project_root": "project", "requirements": "x", "output_path": "/etc/x"}, "output_path"),
        ("tdd_red", {"project_root": "project", "spec": "x", "test_cmd": "'"}, "test_cmd"),
        ("tdd_red", {"project_root": "project", "spec": "x", "test_cmd": "no-such-program"}, "no-such-program"),
        ("tdd_green", {"project_root": "project", "test_path": "tests/no.py", "test_cmd": "pytest"}, "tests/no.py"),
        (
            "tdd_refactor",
            {"project_root": "project", "test_path": "tests/test_cart.py", "impl_path": "x.py", "test_cmd": "true"},
            "x.py",
        ),
        ("session_log", {"session_id": "../x"}, "session_id"),
        ("retrospective", {"session_id": "unknown"}, "no call log"),
        ("trainer", {"session_id": "unknown"}, "no call log"),
        ("run_start", {"workflow": "x"}, "no tool"),
        ("reveiw", {}, "no tool"),
    ],
)
def test_what_can_not_be_done_is_said_before_anything_is_spent(
    scene: SkillsSetup, tool: str, arguments: dict[str, Json], why: str
) -> None:
    """As an error that says what to change; the router is not asked, and no copy is left."""
    with pytest.raises(UsageError) as caught:
        scene.call(tool, arguments)
    assert why in caught.value.what
    assert caught.value.hint
    assert scene.router.jobs == []
    assert list(scene.stage.scratch.iterdir()) == []


def test_a_tool_that_is_misspelt_is_told_the_nearest_name(scene: SkillsSetup) -> None:
    """Runs are not among those that are offered here."""
    with pytest.raises(NotFound) as caught:
        scene.call("reveiw", {})
    assert "review" in caught.value.hint


def test_with_a_session_its_history_goes_before_the_task(scene: SkillsSetup) -> None:
    """Entries of the current phase are left out; the call carries the session on."""
    scene.log("s1", skill="tdd", phase="red", final_status="pass", message="a test")
    scene.log("s1", skill="review", phase="review", final_status="fail", message="the last review")
    scene.outcome("review", {"project_root": "project", "files": ["shop"], "session_id": "s1", "model": "m"})
    assert scene.job.task.startswith("## Session history\n")
    assert "a test" in scene.job.task
    assert "the last review" not in scene.job.task
    assert (scene.job.session_id, scene.job.model) == ("s1", "m")


def test_green_is_shown_the_test_and_what_it_imports(scene: SkillsSetup) -> None:
    """The least that a model needs to make it pass; the test can be named as one of its cases."""
    arguments = {"project_root": "project", "test_path": "tests/test_cart.py::test", "test_cmd": "true"}
    scene.outcome("tdd_green", arguments)
    assert scene.job.files == ("tests/test_cart.py", "shop/cart.py")
    assert "test_path: tests/test_cart.py::test" in scene.job.task


def test_a_skill_of_the_person_is_a_tool_without_code(scene: SkillsSetup) -> None:
    """Its own chain is used unless the person's models file names one."""
    folder = scene.stage.top / "home" / "config" / "skills" / "poet"
    folder.mkdir(parents=True)
    text = (
        "---\nname: poet\ndescription: Writes verse.\nbailiwick:\n  chain: [ollama/bard]\n  writes: true\n---\n# Laws\n"
    )
    (folder / "SKILL.md").write_text(text, "utf-8")
    scene.router.answers[0] = {"files": (FileOut("poem.txt", "o"),)}
    made = scene.outcome("poet", {"project_root": "project", "task": "a poem"})
    assert made.error == ""
    assert (scene.stage.root / "poem.txt").read_text() == "o"
    assert scene.router.jobs[0].chain == ("ollama/bard",)
    (scene.stage.top / "home" / "config" / "models.yaml").write_text("skills: {poet: {chain: [ollama/own]}}\n", "utf-8")
    scene.outcome("poet", {"project_root": "project", "task": "another"})
    assert scene.router.jobs[1].chain == ()


def test_the_models_file_of_the_call_goes_before_others(scene: SkillsSetup) -> None:
    """`--models FILE`."""
    own = scene.stage.top / "mine.yaml"
    own.write_text("default_chain: [ollama/mine]\n", "utf-8")
    scene.outcome("review", {"project_root": "project", "files": ["shop"]}, models_file=own)
    models = scene.router.models[0]
    assert models is not None
    assert models.default_chain == ("ollama/mine",)


def test_a_projects_word_to_stay_local_holds_wherever_the_call_comes_from(scene: SkillsSetup) -> None:
    """The server was started elsewhere; the project's own file counts."""
    scene.stage.write({".bailiwick/models.yaml": "local_only: true\n"})
    scene.outcome("review", {"project_root": "project", "files": ["shop"]})
    models = scene.router.models[0]
    assert models is not None
    assert models.local_only


def test_a_retrospective_is_told_the_log(scene: SkillsSetup) -> None:
    """Numbered entries, and no project."""
    scene.log("s1", skill="tdd", phase="red", final_status="pass", message="a test", attempts=[])
    scene.outcome("retrospective", {"session_id": "s1"})
    assert scene.job.task.startswith("phase: retrospective\nsession_id: s1\nentries:\n  1. {")
    assert (scene.job.root, scene.job.session_id) == ("", "s1")


def test_the_trainer_reads_writes_and_files(scene: SkillsSetup) -> None:
    """The reader's summary and candidates go into the writer's task; the notes wait for a person."""
    scene.log("s1", skill="tdd", phase="red", project_root="/nowhere/shop", message="m", attempts=[])
    scene.shelf.found = [Note("n-00000001", "Known", "already")]
    lesson = {"title": "Use UTC", "lesson": "set TZ", "entries": [1], "scope": "project"}
    note = {"title": "Use UTC", "text": "**Do:** set TZ", "type": "fact", "scope": "project", "tags": ["time"]}
    scene.router.answers[:2] = [{"message": "one lesson", "candidates": (lesson,)}, {"candidates": (note,)}]
    made = scene.outcome("trainer", {"session_id": "s1"})
    reader, writer = scene.router.jobs
    assert (reader.phase, writer.phase) == ("reader", "writer")
    assert reader.session_id == writer.session_id == "s1"
    assert reader.discipline != writer.discipline
    assert "summary: one lesson" in writer.task
    assert '"lesson": "set TZ"' in writer.task
    assert "n-00000001" in writer.task
    [(text, details)] = scene.shelf.filed
    assert (text, details["source"], details["by_agent"]) == ("**Do:** set TZ", "session s1", True)
    assert details["scope"].startswith("shop-")
    assert (made.call, made.result.phase, made.result.details["reader"]) == ("c-2", "trainer", "c-1")
    assert made.result.details["notes"][0]["id"] == "n-1"


def test_without_a_lesson_no_writer_is_asked(scene: SkillsSetup) -> None:
    """And one that no entry shows is refused."""
    scene.log("s1", skill="tdd", phase="red", message="m", attempts=[])
    assert scene.outcome("trainer", {"session_id": "s1"}).result.details["notes"] == []
    scene.router.answers[1] = {"candidates": ({"title": "x", "entries": [9]},)}
    assert "entries from 1 to 1" in scene.outcome("trainer", {"session_id": "s1"}).error
    assert [job.phase for job in scene.router.jobs] == ["reader", "reader"]


def test_notes_are_asked_and_written_in_the_scope_of_the_project(scene: SkillsSetup) -> None:
    """Without a project only the general ones count; what a tool files is an agent's."""
    scene.shelf.found = [Note("n-1", "T", "text")]
    found = scene.call("brain_query", {"query": "tests", "limit": 3})
    assert isinstance(found, dict)
    assert found["notes"][0]["id"] == "n-1"
    scene.call("brain_query", {"query": "tests", "project_root": "project"})
    assert scene.shelf.asked[0] == ("tests", "global", 3)
    assert scene.shelf.asked[1][1].startswith("project-")
    scene.call("brain_write", {"note": "a note", "tags": ["x"], "session_id": "s9"})
    text, details = scene.shelf.filed[0]
    assert (text, details["by_agent"], details["scope"], details["source"]) == ("a note", True, "global", "session s9")


def test_an_answer_rests_on_notes_or_no_model_is_asked(scene: SkillsSetup) -> None:
    """A made-up id is refused."""
    nothing = scene.outcome("brain_answer", {"question": "why?"})
    assert (nothing.result.status, nothing.call, scene.router.jobs) == ("fail", "", [])
    scene.shelf.found = [Note("n-0000000a", "T", "because")]
    scene.router.answers = [
        {"details": {"answer": "so [n-0000000a]", "cites": ["n-0000000a"]}},
        {"details": {"answer": "so", "cites": ["n-0000000b"]}},
    ]
    assert scene.outcome("brain_answer", {"question": "why?"}).error == ""
    assert "notes:\n  n-0000000a (pending, general) T" in scene.job.task
    assert "n-0000000b" in scene.outcome("brain_answer", {"question": "why?"}).error


def test_a_session_log_is_told_as_it_stands(scene: SkillsSetup) -> None:
    """A session without one has no entries."""
    scene.log("s1", skill="tdd", phase="red")
    assert scene.call("session_log", {"session_id": "s1"}) == {
        "session_id": "s1",
        "entries": [{"session_id": "s1", "skill": "tdd", "phase": "red"}],
    }
    assert scene.call("session_log", {"session_id": "s2"}) == {"session_id": "s2", "entries": []}


def test_statistics_and_tiers_are_told_without_spending(scene: SkillsSetup) -> None:
    """Nothing was called yet, and nobody listens at the only endpoint; no program is allowed."""
    home = scene.stage.top / "home" / "config"
    home.mkdir(parents=True)
    text = "agents: {allowed_backends: [ollama]}\nendpoints: {mine: {url: 'http://127.0.0.1:9'}}\n"
    (home / "config.yaml").write_text(text, "utf-8")
    (home / "models.yaml").write_text("default_chain: [mine/small]\n", "utf-8")

    async def history() -> tuple[Any, Any]:
        store = await SqliteStore.open(scene.stage.top / "db", now=ManualClock().now)
        skills = Skills(
            config=load_config(scene.stage.top, {}),
            store=store,
            clock=ManualClock(),
            by="ann",
            router=scene.router,
            sandboxes=scene.stage.sandboxes,
            brain=lambda: cast("Any", scene.shelf),
        )
        caller = Caller("ann", "cli", scene.shown.append, asyncio.Event())
        try:
            return await skills.call("stats_models", {}, caller), await skills.call("tier", {}, caller)
        finally:
            await store.close()

    stats, tiers = asyncio.run(history())
    assert stats == {"models": []}
    assert tiers["tiers"]
    assert not any(one["reachable"] for one in tiers["tiers"])
    assert scene.router.jobs == []


def test_skills_that_are_switched_off_answer_nothing(scene: SkillsSetup) -> None:
    """Whoever set it can change it."""
    config = scene.stage.top / "home" / "config"
    config.mkdir(parents=True)
    (config / "config.yaml").write_text("features: {skills: false}\n", "utf-8")
    with pytest.raises(NotReady) as caught:
        scene.call("session_log", {"session_id": "s1"})
    assert isinstance(caught.value, BailiwickError)
    assert "features.skills" in caught.value.hint
