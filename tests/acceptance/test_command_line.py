"""Small things of the command line that people stumble over: help, errors for programs, ambiguous words, places."""

from __future__ import annotations

import json
import os
import pty
import subprocess

import pytest

from tests.acceptance.command import BAILIWICK, Person

FLOW = """version: 1
name: flow
description: counts to one
start: a
nodes:
  - {id: a, type: agent, prompt_text: "Say.", outputs: [{key: word, schema: {type: string}}], next: done}
  - {id: done, type: terminal}
returns: [word]
"""


@pytest.mark.parametrize("words", [(), ("run",), ("runs",), ("runs", "answer"), ("config", "set"), ("skill", "list")])
def test_dash_h_and_help_say_the_same_as_help_the_option(person: Person, words: tuple[str, ...]) -> None:
    """Three habits, one answer."""
    option, short, command = (
        person.runs(*words, "--help"),
        person.runs(*words, "-h"),
        person.runs("help", *words),
    )
    assert (option.code, short.code, command.code) == (0, 0, 0)
    assert option.out == short.out == command.out


def test_help_for_what_is_not_there_is_bad_input(person: Person) -> None:
    """Exit 2, with where to look."""
    result = person.runs("help", "frobnicate")
    assert (result.code, "bailiwick --help" in result.err) == (2, True)


@pytest.mark.parametrize(
    "words",
    [
        ("runs", "show", "nobody"),
        ("why", "nobody"),
        ("run", "nowhere"),
        ("run", "--nope"),
        ("frobnicate",),
        ("gate",),
        ("proposals", "show", "zzzz"),
        ("logs", "nobody"),
        ("run", "broken"),
        ("resume", "nobody"),
    ],
)
def test_with_json_an_error_is_one_document(person: Person, words: tuple[str, ...]) -> None:
    """A program that asked for JSON gets JSON, whatever happens; people still read the words."""
    (person.cwd / "broken").mkdir()
    (person.cwd / "broken" / "workflow.yaml").write_text("start: a\nnodes: [{id: a, type: nothing}]\n")
    result = person.runs(*words, "--json")
    assert result.code in (2, 8)
    error = json.loads(result.out)["error"]
    assert set(error) == {"code", "message", "place", "hint"}
    assert error["message"]
    assert error["code"].startswith("BW")
    assert result.err


def test_an_unknown_node_is_bad_input_that_names_the_nodes(person: Person) -> None:
    """An empty log would look as if nothing had happened there."""
    flow = person.workflow("flow", FLOW)
    assert person.runs("run", flow, "--simulate").code == 0
    for words in (("logs", "flow", "nosuch"), ("why", "flow", "nosuch")):
        result = person.runs(*words)
        assert (result.code, result.out) == (2, "")
        assert "a, done" in result.err
    assert "did you mean done?" in person.runs("logs", "flow", "don").err


def test_a_picture_is_written_as_its_name_says_or_not_at_all(person: Person) -> None:
    """Mermaid text in a file named .png helps nobody."""
    flow = person.workflow("flow", FLOW)
    refused = person.runs("graph", flow, "-o", "x.png")
    assert (refused.code, (person.cwd / "x.png").exists()) == (2, False)
    assert all(ending in refused.err for ending in (".svg", ".dot", ".mmd"))
    for name, start in (("x.svg", "<svg"), ("x.dot", "digraph"), ("x.mmd", "flowchart")):
        assert person.runs("graph", flow, "-o", name).code == 0
        assert start in (person.cwd / name).read_text()
    assert person.runs("graph", flow, "--format", "svg", "-o", "x.png").code == 0


def test_simulate_never_takes_the_workflow_for_its_script(person: Person) -> None:
    """The flag may stand anywhere: what is a workflow is the workflow."""
    flow = person.workflow("flow", FLOW)
    (person.cwd / "script.yaml").write_text("nodes: {a: [{answer: {word: scripted}}]}\n")
    orders = (
        (("--simulate", str(flow)), "example"),
        ((str(flow), "--simulate"), "example"),
        (("--simulate", "script.yaml", str(flow)), "scripted"),
        (("--simulate", str(flow), "script.yaml"), "scripted"),
        ((str(flow), "--simulate", "script.yaml"), "scripted"),
    )
    for number, (words, word) in enumerate(orders):
        result = person.runs("run", *words, "--run-id", f"r{number}", "--json")
        assert (result.code, result.json()["results"]) == (0, {"word": word}), words
    assert person.runs("run", flow, "--simulate", "nowhere.yaml").code == 2


@pytest.mark.parametrize("words", [("gate",), ("init", "--yes"), ("issue-to-pr", "issue.md"), ("self-heal",)])
def test_outside_a_repository_nothing_is_ready(person: Person, words: tuple[str, ...]) -> None:
    """The same code everywhere, 8: the command is right, and something has to be there first."""
    (person.cwd / "issue.md").write_text("# Do it\n")
    result = person.runs(*words)
    assert result.code == 8, result.err
    assert "git" in result.err


def test_a_finished_run_is_shown_where_no_sandbox_is(person: Person) -> None:
    """Nothing is run, so nothing is needed to run it."""
    flow = person.workflow("flow", FLOW)
    assert person.runs("run", flow, "--simulate").code == 0
    empty = person.cwd / "empty"
    empty.mkdir()
    person.extra["PATH"] = str(empty)
    person.extra["BAILIWICK_SANDBOX_BACKEND"] = "bwrap"
    result = person.runs("run", flow, "--backend", "claude")
    assert (result.code, "Already done" in result.out) == (0, True), result.err


def test_run_with_nothing_lists_the_workflows_with_what_they_are_for(person: Person) -> None:
    """A name alone says little."""
    person.workflow("flow", FLOW)
    result = person.runs("run")
    assert result.code == 0
    rows = {line.split()[0]: line for line in result.out.splitlines() if line.strip()}
    assert "counts to one" in rows["flow/"]
    assert "an issue becomes a proposal" in rows["issue-to-pr"]
    listed = {row["name"]: row["description"] for row in person.runs("run", "--json").json()["workflows"]}
    assert listed["flow/"] == "counts to one"
    assert "did you mean flow?" in person.runs("run", "flwo").err


@pytest.mark.parametrize(("term", "coloured"), [("dumb", False), ("xterm", True)])
def test_a_dumb_terminal_gets_no_colours(person: Person, term: str, coloured: bool) -> None:
    """What can't show colours would show their codes."""
    assert person.runs("run", person.workflow("flow", FLOW), "--simulate").code == 0
    env = {name: value for name, value in person.env().items() if name != "NO_COLOR"} | {"TERM": term}
    ours, theirs = pty.openpty()
    done = subprocess.run(
        [BAILIWICK, "runs", "list"],
        cwd=person.cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        timeout=600,
        check=False,
    )
    os.close(theirs)
    printed = b""
    while chunk := _read(ours):
        printed += chunk
    os.close(ours)
    assert (done.returncode, b"\x1b[" in printed) == (0, coloured)


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:
        return b""


def test_words_that_mean_two_things_have_two_names(person: Person) -> None:
    """`--known-red` and `--wait` are flags; an id goes to `--allow-red` and `--question`."""
    assert "--allow-red ID" in person.runs("gate", "--help").out
    assert "--known-red" not in person.runs("gate", "--help").out
    assert "--question ID" in person.runs("runs", "answer", "--help").out
    assert "--wait" not in person.runs("runs", "answer", "--help").out


def test_a_simulation_is_given_for_the_issue_that_is_named(person: Person) -> None:
    """A missing file, or one of a forge, is bad input before anything is set up."""
    for issue in ("/no/such/issue.md", "412", "acme/shop#3"):
        refused = person.runs("issue-to-pr", issue, "--simulate", "good")
        assert (refused.code, refused.out) == (2, ""), issue
    for flag in ("--detach", "--fresh"):
        assert person.runs("issue-to-pr", "--simulate", "good", flag).code == 2


def test_times_are_shown_in_the_zone_that_is_configured(person: Person) -> None:
    """When a question was asked, say; a zone that nobody knows is refused where it stands."""
    config = person.home / "config" / "config.yaml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text("version: 1\ntime: {zone: Asia/Kathmandu}\n")
    nodes = "  - {id: ask, type: ask, question: ok?, choices: [yes], next: done}\n  - {id: done, type: terminal}\n"
    flow = person.workflow("flow", f"version: 1\nname: flow\nstart: ask\nnodes:\n{nodes}")
    assert person.runs("run", flow).code == 3
    assert "+0545" in person.runs("why", "flow").out
    config.write_text("version: 1\ntime: {zone: Mars/Olympus}\n")
    refused = person.runs("runs", "list")
    assert refused.code == 2
    assert "config.yaml:2:14" in refused.err
    assert "a time zone such as Europe/Berlin or UTC" in refused.err
