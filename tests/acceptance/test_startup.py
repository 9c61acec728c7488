"""What a command does not load. Start-up time is a promise; what is not imported can't cost any."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.command import EXAMPLES, Person

HEAVY = ("pydantic", "jinja2", "yaml", "rich", "apsw", "asyncio", "jsonschema_rs", "cronsim", "subprocess")
PROBE = """
import json, sys
sys.argv = ["bailiwick", *json.loads(sys.argv[1])]
from bailiwick.__main__ import main
code = 0
try:
    main()
except SystemExit as error:
    code = error.code
sys.stderr.write("\\n" + json.dumps(sorted(sys.modules)))
"""


def _loaded(person: Person, *args: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROBE, json.dumps(args)],
        cwd=person.cwd,
        env=person.env(),
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=600,
        check=True,
    )
    return set(json.loads(done.stderr.splitlines()[-1]))


GREETED = """
import asyncio, json, os, sys
inlet, feed = os.pipe()
outlet_read, outlet = os.pipe()
params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
os.write(feed, json.dumps(hello).encode() + b"\\n")
os.dup2(inlet, 0)
os.dup2(outlet, 1)

import bailiwick.cli.commands.serve as cli

async def told(wire, stop):
    answer = os.read(outlet_read, 65536)
    sys.stderr.write("\\n" + json.dumps([json.loads(answer)["id"], sorted(sys.modules)]))

cli._serve_pipe = told
sys.argv = ["bailiwick", "mcp"]
from bailiwick.__main__ import main
main()
"""


def test_a_client_is_greeted_before_the_server_is_loaded(person: Person) -> None:
    """The packages of the protocol take more than a second: an impatient client has its answer before that."""
    done = subprocess.run(
        [sys.executable, "-c", GREETED],
        cwd=person.cwd,
        env=person.env(),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    name, modules = json.loads(done.stderr.splitlines()[-1])
    assert name == 1
    heavy = {"mcp", "mcp_types", "pydantic", "starlette", "uvicorn", "anyio", "apsw", "jinja2", "bailiwick.app.service"}
    assert not heavy & set(modules)


def test_version_needs_nothing(person: Person) -> None:
    """`--version` is answered before any import, of ours or of others."""
    modules = _loaded(person, "--version")
    assert {m for m in modules if m.startswith("bailiwick")} == {"bailiwick", "bailiwick.__main__"}
    assert not modules & {*HEAVY, "click"}


def test_help_loads_no_command(person: Person) -> None:
    """The list of commands is a table; the commands themselves stay on disk."""
    modules = _loaded(person, "--help")
    ours = {m for m in modules if m.startswith("bailiwick.")}
    assert ours <= {
        "bailiwick.__main__",
        "bailiwick.cli",
        "bailiwick.cli.root",
        "bailiwick.cli.table",
        "bailiwick.errors",
    }
    assert not modules & set(HEAVY)


@pytest.mark.parametrize("example", ["linear"])
def test_a_run_off_a_terminal_loads_no_terminal_library(person: Person, example: str) -> None:
    """Nothing on the way of a plain run needs a model library or a terminal one."""
    modules = _loaded(person, "run", str(EXAMPLES / example))
    assert not modules & {"pydantic", "rich", "cronsim"}


def test_a_workflow_without_expressions_needs_no_template_engine(person: Person) -> None:
    """A hello workflow pays for no template engine, as simple names are looked up, or for parts it does not use."""
    flow = person.workflow(
        "hello",
        "version: 1\nstart: a\nvars: {who: you}\nnodes:\n"
        '  - {id: a, type: script, script: scripts/a.sh, args: ["{{ who }}"], next: done}\n'
        "  - {id: done, type: terminal}\n",
        a_sh="echo hello $1\n",
    )
    modules = _loaded(person, "run", str(flow))
    assert not modules & {"pydantic", "rich", "jinja2", "jsonschema_rs"}
    packages = {name.split(".")[1] for name in modules if name.startswith("bailiwick.")}
    assert not packages & {"brain", "egress", "environments", "gate", "git", "pipelines", "proposals", "routing"}
    assert not packages & {"sandbox", "skills", "service", "doctor", "demo", "dryrun", "drawing"}


def test_going_on_with_a_run_needs_no_yaml(person: Person) -> None:
    """The compiled definition is in the store: `resume` reads no workflow file."""
    assert person.runs("run", EXAMPLES / "ask-choices").code == 3
    assert person.runs("runs", "answer", "ask-choices", "green").code == 0
    modules = _loaded(person, "resume", "ask-choices")
    assert "yaml" not in modules


def test_importing_the_package_does_nothing(tmp_path: Path) -> None:
    """No file, no thread, no other module of ours."""
    code = "import sys, bailiwick; print([m for m in sys.modules if m.startswith('bailiwick.')])"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    assert list(tmp_path.iterdir()) == []
