"""Bad input from the command line: a clear error with a place and a hint, exit 2, little memory, nothing written."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.command import BAILIWICK, EXAMPLES, Person

HEAD = b"version: 1\nstart: a\nnodes:\n"
TAIL = b"  - {id: a, type: terminal}\n"
LAUGHS = b"a0: &a0 [x,x,x,x,x,x,x,x,x]\n" + b"".join(
    b"a%d: &a%d [%s]\n" % (i, i, b",".join([b"*a%d" % (i - 1)] * 9)) for i in range(1, 12)
)
BAD: dict[str, tuple[bytes, str]] = {
    "billion laughs": (LAUGHS + HEAD + TAIL, "alias"),
    "duplicate key": (b"version: 1\nstart: a\nstart: b\nnodes:\n" + TAIL, "start"),
    "custom tag": (b"version: 1\nstart: !!python/object:os.system a\nnodes:\n" + TAIL, "tag"),
    "control character": (HEAD + b'  - {id: a, type: terminal, description: "x\x07"}\n', "character"),
    "bad id": (HEAD + b"  - {id: 'a b', type: terminal}\n", "a b"),
    "not a number": (
        HEAD + b"  - {id: a, type: set, values: {x: .nan}, next: b}\n  - {id: b, type: terminal}\n",
        "nan",
    ),
    "huge integer": (HEAD + b"  - {id: a, type: set, values: {x: " + b"9" * 5000 + b"}, next: b}\n" + TAIL, "64"),
    "not UTF-8": (b"version: 1\nname: \xff\xfe\n" + HEAD + TAIL, "UTF-8"),
    "unknown next": (
        HEAD + b"  - {id: a, type: set, values: {x: 1}, next: dnoe}\n  - {id: done, type: terminal}\n",
        "done",
    ),
    "missing script": (
        HEAD + b"  - {id: a, type: script, script: scripts/no.py, next: b}\n  - {id: b, type: terminal}\n",
        "no.py",
    ),
    "path outside": (
        HEAD + b"  - {id: a, type: script, script: ../../etc/passwd, next: b}\n  - {id: b, type: terminal}\n",
        "leads out",
    ),
    "too large": (HEAD + TAIL + b"#" * (1 << 20), "1,048,576"),
    "no nodes": (b"version: 1\nstart: a\nnodes: []\n", "not empty"),
    "not a mapping": (b"- 1\n- 2\n", "mapping"),
    "broken template": (
        HEAD + b"  - {id: a, type: set, values: {x: '{{ 1 +'}, next: b}\n  - {id: b, type: terminal}\n",
        "template",
    ),
}


METER = """
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL).returncode
print(code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def _measured(person: Person, *args: str | Path) -> tuple[int, str, int]:
    """A command's code, its errors, and the most memory it had (KiB), by a parent that is small itself."""
    done = subprocess.run(
        [sys.executable, "-S", "-c", METER, BAILIWICK, *args],
        cwd=person.cwd,
        env=person.env(),
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    code, memory = done.stdout.split()
    return int(code), done.stderr, int(memory)


@pytest.mark.parametrize("name", BAD)
def test_a_bad_workflow_is_refused(person: Person, name: str) -> None:
    """Exit 2 with the place and what to do; no state is made, memory stays small."""
    text, word = BAD[name]
    folder = person.cwd / "flow"
    folder.mkdir()
    (folder / "workflow.yaml").write_bytes(text)
    code, errors, memory = _measured(person, "run", folder)
    assert code == 2, errors
    assert "workflow.yaml" in errors
    assert "error[BW" in errors
    assert word.lower() in errors.lower()
    assert "Traceback" not in errors
    assert memory < 100_000
    assert not (person.home / "state" / "runs").exists()


def test_a_symlink_out_of_the_directory_is_refused(person: Person) -> None:
    """A workflow can't read what lies beside it."""
    (person.cwd / "secret.py").write_text("print(1)")
    flow = person.workflow(
        "flow",
        "version: 1\nstart: a\nnodes:\n"
        "  - {id: a, type: script, script: scripts/x.py, next: b}\n"
        "  - {id: b, type: terminal}\n",
    )
    (flow / "scripts" / "x.py").symlink_to(person.cwd / "secret.py")
    code, errors, _ = _measured(person, "validate", flow)
    assert code == 2
    assert "link out of the workflow directory" in errors


@pytest.mark.nightly
def test_ten_thousand_nodes_work(person: Person) -> None:
    """The largest workflow there may be loads, validates and runs."""
    lines = [f"  - {{id: n{i}, type: set, values: {{x: {i}}}, next: n{i + 1}}}" for i in range(9_999)]
    text = "version: 1\nname: big\nstart: n0\nnodes:\n" + "\n".join([*lines, "  - {id: n9999, type: terminal}"]) + "\n"
    flow = person.workflow("big", text)
    assert person.runs("validate", flow).code == 0
    result = person.runs("run", flow, "--json")
    assert result.code == 0, result.err
    assert result.json()["steps"] == 9_999


def test_a_value_that_looks_like_a_template_stays_text(person: Person) -> None:
    """Text from outside is data, however often it is rendered."""
    flow = person.workflow(
        "flow",
        "version: 1\nstart: a\nvars: {evil: x}\nnodes:\n"
        "  - {id: a, type: set, values: {b: '{{ evil }}', c: '<{{ evil }}>'}, next: s}\n"
        "  - {id: s, type: script, script: scripts/show.py, args: ['{{ b }}', '{{ c }}'], outputs: [{key: got}],"
        " next: d}\n"
        "  - {id: d, type: terminal}\nreturns: [got]\n",
        show_py="import json, sys\nprint(json.dumps({'got': sys.argv[1:]}))\n",
    )
    evil = "{{ ''.__class__.__mro__ }}"
    result = person.runs("run", flow, "--params", json.dumps({"evil": evil}), "--json")
    assert result.code == 0, result.err
    assert result.json()["context"]["got"] == [evil, f"<{evil}>"]


@pytest.mark.parametrize("key", ["yes", "no", "on", "off", "null", "1", "true"])
def test_an_unquoted_word_in_cases_is_text(person: Person, key: str) -> None:
    """YAML's old booleans must not eat a case."""
    flow = person.workflow(
        "flow",
        "version: 1\nstart: a\nvars: {answer: other}\nnodes:\n"
        f"  - {{id: a, type: branch, path: answer, cases: {{{key}: good}}, default: bad}}\n"
        "  - {id: good, type: terminal}\n  - {id: bad, type: fail}\n",
    )
    assert person.runs("run", flow, "--params", f'{{"answer": "{key}"}}').code == 0


@pytest.mark.parametrize(
    ("args", "word"),
    [
        (("run", "nowhere"), "nowhere"),
        (("run", "nowhere/deep"), "nowhere"),
        (("rnu",), "run"),
        (("run", EXAMPLES / "linear", "--run-id", "../x"), "run id"),
        (("run", EXAMPLES / "linear", "--params", "[1]"), "object"),
        (("run", EXAMPLES / "linear", "--params", '{"a": NaN}'), "JSON"),
        (("run", EXAMPLES / "linear", "--params", '{"a": 1, "a": 2}'), "twice"),
        (("run", EXAMPLES / "linear", "--params-file", "no.json"), "no.json"),
        (("run", EXAMPLES / "linear", "--wait", "--no-wait"), "exclude"),
        (("runs", "show", "nobody"), "nobody"),
        (("new", "a b"), "name"),
        (("new", "x", "--template", "none"), "template"),
        (("config", "get", "bugdet"), "budget"),
    ],
)
def test_a_bad_command_line_says_what_is_wrong(person: Person, args: tuple[str | Path, ...], word: str) -> None:
    """Exit 2, words, no traceback."""
    result = person.runs(*args)
    assert result.code == 2, result.out + result.err
    assert word in result.err
    assert "Traceback" not in result.err


@pytest.mark.parametrize(("backend", "word"), [("clade", "claude"), ("codex", "AGENT_CMD")])
def test_an_agent_without_a_backend_is_refused_before_anything_starts(person: Person, backend: str, word: str) -> None:
    """It validates; running it names what is known and what would do instead. Nothing is started, nothing spent."""
    flow = person.workflow(
        "flow",
        "start: a\nnodes:\n"
        f"  - {{id: a, type: agent, backend: {backend}, prompt_text: hello, outputs: [{{key: x}}], next: d}}\n"
        "  - {id: d, type: terminal}\n",
    )
    assert person.runs("validate", flow).code == 0
    person.extra["PATH"] = "/usr/bin:/bin"
    result = person.runs("run", flow)
    assert result.code == 2
    assert word in result.err
    assert "--simulate" in result.err
