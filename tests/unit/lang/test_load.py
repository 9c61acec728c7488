"""Loading: a directory, the files it needs, the workflows it calls."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bailiwick.errors import InputInvalid
from bailiwick.lang import files
from bailiwick.lang.load import load
from tests.unit.lang.flows import END, Flow, complete, word_at

SMALL = f"start: done\nnodes:\n{END}"


def calling(reference: str, returns: str = "") -> str:
    """A workflow that calls another."""
    return f"start: a\n{returns}nodes:\n  - {{id: a, type: call, workflow: {reference}, next: done}}\n{END}"


def test_a_directory_and_its_file_load_the_same(flow: Flow) -> None:
    """People give either."""
    flow.write("workflow.yaml", SMALL)
    by_directory, by_file = flow.load(), load(flow.root / "workflow.yaml")
    assert by_directory == by_file
    assert by_directory.root == flow.root.resolve()


def test_a_relative_path_is_shown_as_given_and_named_by_its_directory(
    flow: Flow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`bailiwick run .` knows its name, and problems carry the path that was typed."""
    monkeypatch.chdir(flow.root)
    flow.write("workflow.yaml", SMALL)
    assert load(Path()).graph.name == "flow"
    flow.write("workflow.yaml", "start: x\n")
    with pytest.raises(InputInvalid) as caught:
        load(Path())
    assert str(caught.value.place).startswith("workflow.yaml:")


def test_pinned_are_the_workflow_its_prompts_and_its_scripts(flow: Flow) -> None:
    """Everything below the two folders, used or not, but no caches; other files stay live data."""
    flow.write("workflow.yaml", SMALL)
    names = ("prompts/a.md", "prompts/deep/b.md", "scripts/c.sh", "scripts/lib/d.py")
    for name in (*names, "scripts/__pycache__/x.pyc", "scripts/.venv/big", "data/e.csv", "README.md"):
        flow.write(name, "")
    (flow.root / "prompts/link.md").symlink_to("a.md")
    loaded = flow.load()
    assert set(loaded.files) == {"workflow.yaml", "prompts/link.md", *names}
    assert all(path.is_absolute() and path.is_file() for path in loaded.files.values())


def test_what_cannot_be_pinned_is_an_error(flow: Flow, tmp_path: Path) -> None:
    """A pipe would hang the pin, a link out would pin something else, a linked folder could be endless."""
    flow.write("workflow.yaml", SMALL)
    flow.write("prompts/deep/x.md", "")
    (tmp_path / "out").mkdir()
    (tmp_path / "secret").write_text("")
    (flow.root / "scripts").mkdir()
    os.mkfifo(flow.root / "scripts/pipe")
    (flow.root / "scripts/away").symlink_to(tmp_path / "secret")
    (flow.root / "scripts/lost").symlink_to("nowhere")
    (flow.root / "scripts/ring").symlink_to("ring")
    (flow.root / "prompts/deep/loop").symlink_to("..")
    found = {str(complete(problem).place).rsplit("/", 1)[-1]: problem.code for problem in flow.problems()}
    assert found == {"pipe": "BW132", "away": "BW131", "lost": "BW130", "ring": "BW132", "loop": "BW131"}


def test_a_linked_prompts_folder_is_an_error(flow: Flow, tmp_path: Path) -> None:
    """The whole folder would lie outside."""
    flow.write("workflow.yaml", SMALL)
    (tmp_path / "shared").mkdir()
    (flow.root / "prompts").symlink_to(tmp_path / "shared")
    flow.problem("BW131")


def test_more_than_the_pin_may_hold_is_an_error(flow: Flow, monkeypatch: pytest.MonkeyPatch) -> None:
    """Called workflows count too; the limit is made small here so that nothing large is written."""
    assert files.MAX_PINNED == 50 << 20
    monkeypatch.setattr("bailiwick.lang.load.MAX_PINNED", 1000)
    flow.write("workflow.yaml", calling("child"))
    flow.write("child/workflow.yaml", SMALL)
    flow.write("scripts/a", "x" * 600)
    assert flow.load().warnings == []
    flow.write("child/prompts/b", "x" * 600)
    assert "the most is 1,000" in flow.problem("BW133").what


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_script_that_cannot_be_read_is_an_error(flow: Flow) -> None:
    """Better now than at three in the morning."""
    flow.write("scripts/s.sh", "").chmod(0)
    flow.nodes("- {id: a, type: script, script: scripts/s.sh, next: done}")
    flow.problem("BW101")


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("prompts/none.md", "BW130"),
        ("../up.md", "BW131"),
        ("/etc/hostname", "BW131"),
        ("~/x", "BW131"),
        ("out.md", "BW131"),
        ("prompts", "BW132"),
        ("a\\b", "BW132"),
        ("prompts/x.md/y", "BW132"),
    ],
)
def test_a_prompt_or_script_has_to_be_a_file_of_the_directory(flow: Flow, tmp_path: Path, path: str, code: str) -> None:
    """Agents and poll scripts alike; the problem points at the name."""
    (tmp_path / "secret").write_text("")
    (tmp_path / "up.md").write_text("")
    (flow.root / "out.md").symlink_to(tmp_path / "secret")
    flow.write("prompts/x.md", "")
    flow.nodes(
        f"""
        - {{id: a, type: agent, prompt: '{path}', next: b}}
        - {{id: b, type: script, script: '{path}', next: c}}
        - {{id: c, type: wait, poll: {{script: '{path}'}}, next: done}}
        """
    )
    found = flow.problems()
    assert [complete(problem).code for problem in found] == [code] * 3
    assert all(word_at(problem).startswith(f"'{path}'") for problem in found)


def test_a_missing_directory_or_file_is_an_error_with_its_path(tmp_path: Path) -> None:
    """The first mistake of all."""
    (tmp_path / "empty").mkdir()
    for path in (tmp_path / "none", tmp_path / "empty"):
        with pytest.raises(InputInvalid) as caught:
            load(path)
        [problem] = caught.value.problems()
        assert complete(problem).code == "BW101"
        assert str(path) in str(problem.place)


def test_a_workflow_file_that_links_elsewhere_is_an_error(flow: Flow, tmp_path: Path) -> None:
    """Its prompts would be looked for in the wrong place."""
    (tmp_path / "real.yaml").write_text(SMALL)
    (flow.root / "workflow.yaml").symlink_to(tmp_path / "real.yaml")
    flow.problem("BW131")


def test_a_directory_name_that_is_no_workflow_name_asks_for_one(tmp_path: Path) -> None:
    """Runs are kept under the name, so it has to be plain."""
    flow = Flow(tmp_path / "my flow!")
    flow.write("workflow.yaml", SMALL)
    assert "name:" in flow.problem("BW120").hint
    flow.write("workflow.yaml", "name: fine\n" + SMALL)
    assert flow.graph().name == "fine"


@pytest.mark.parametrize("name", ["-x", "a b", "../x", "x" * 65, "''", "ä"])
def test_a_bad_name_is_an_error(flow: Flow, name: str) -> None:
    """A name becomes a directory and a key."""
    flow.write("workflow.yaml", f"name: {name}\n{SMALL}")
    assert {problem.code for problem in flow.problems()} == {"BW110"}


def test_strict_turns_unknown_keys_into_errors(flow: Flow) -> None:
    """`validate --strict` is for those who want no typos at all."""
    flow.write("workflow.yaml", f"descripton: x\n{SMALL}")
    assert flow.load().warnings[0].warning
    with pytest.raises(InputInvalid):
        flow.load(strict=True)


def test_errors_come_with_the_warnings_in_the_order_of_the_file(flow: Flow) -> None:
    """One list to work through from top to bottom."""
    flow.nodes("- {id: a, type: set, values: {k: '{{ nope }}'}, next: gone, x: 1}", head="extra: 1\n")
    found = flow.problems()
    assert [problem.code for problem in found] == ["BW112", "BW141", "BW103", "BW112"]
    assert [problem.warning for problem in found] == [True, True, False, True]


def test_very_many_problems_are_cut_short(flow: Flow) -> None:
    """The errors are kept, and how many are left out is said."""
    flow.nodes("\n".join(f"- {{id: n{i}, type: set, values: {{}}, next: x{i}}}" for i in range(300)))
    found = flow.problems()
    assert len(found) == 201
    assert not found[0].warning
    assert "more problems" in found[-1].what


def test_a_called_workflow_is_found_inside_the_directory_or_by_name(flow: Flow, tmp_path: Path) -> None:
    """Parts of a workflow lie beside it, shared ones anywhere."""
    other = Flow(tmp_path / "other")
    other.write("workflow.yaml", SMALL)
    flow.write(
        "workflow.yaml",
        f"""start: a
nodes:
  - {{id: a, type: call, workflow: parts/one, next: b}}
  - {{id: b, type: call, workflow: parts/one/workflow.yaml, next: c}}
  - {{id: c, type: call, workflow: shared, next: done}}
{END}""",
    )
    flow.write("parts/one/workflow.yaml", SMALL)
    asked: list[tuple[str, Path]] = []

    def find(name: str, directory: Path) -> Path | None:
        asked.append((name, directory))
        return other.root if name == "shared" else None

    calls = flow.load(find).calls
    assert calls["parts/one"] is calls["parts/one/workflow.yaml"]
    assert calls["parts/one"].root == flow.root.resolve() / "parts/one"
    assert calls["shared"].graph.name == "other"
    assert asked == [("shared", flow.root.resolve())]


def test_workflows_that_call_each_other_share_their_loaded_form(flow: Flow) -> None:
    """Recursion is allowed; the engine bounds its depth."""
    flow.write("workflow.yaml", calling("child"))
    flow.write("child/workflow.yaml", calling("top"))
    loaded = flow.load(lambda name, _: flow.root if name == "top" else None)
    assert loaded.calls["child"].calls["top"] is loaded


@pytest.mark.parametrize(
    ("reference", "code"),
    [("../x", "BW131"), ("/x", "BW131"), ("nope", "BW134"), ("no/pe", "BW134"), ("hollow", "BW134")],
)
def test_a_call_that_leads_nowhere_or_out_is_an_error(flow: Flow, reference: str, code: str) -> None:
    """Said where the reference stands."""
    (flow.root / "hollow").mkdir()
    flow.write("workflow.yaml", calling(reference))
    assert word_at(flow.problem(code)).startswith(reference)


def test_problems_of_a_called_workflow_are_reported_with_its_file(flow: Flow) -> None:
    """A run never starts that would fail in a child for a typo."""
    flow.write("workflow.yaml", calling("child"))
    flow.write("child/workflow.yaml", "start: nope\nnodes:\n- {id: a, type: terminal}\n")
    problem = flow.problem("BW103")
    assert problem.place is not None
    assert Path(problem.place.file) == flow.root / "child/workflow.yaml"
    flow.write("child/workflow.yaml", "start: [\n")
    flow.problem("BW104")


def test_loading_needs_neither_pydantic_nor_jinja_nor_a_schema_engine(flow: Flow) -> None:
    """Start-up time is a promise: what a small workflow does not use is not imported."""
    flow.nodes("- {id: a, type: set, values: {k: '{{ run.id }}'}, next: done}")
    program = (
        "import sys; from pathlib import Path; from bailiwick.lang.load import load; load(Path(sys.argv[1]));"
        "print([m for m in ('pydantic', 'jinja2', 'jsonschema_rs', 'asyncio', 'rich', 'click') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program, str(flow.root)], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
