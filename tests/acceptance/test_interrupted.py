"""What people see of a run whose process was killed, and of many runs."""

from __future__ import annotations

import json
import signal

import pytest

from bailiwick.testing.polling import until
from tests.acceptance.command import Person, end

pytestmark = pytest.mark.slow

FLOW = """version: 1
name: slow
start: hold
nodes:
  - {id: hold, type: script, script: scripts/hold.sh, next: done}
  - {id: done, type: terminal}
"""
HOLD = 'touch "$BAILIWICK_WORKSPACE/begun"\nwhile [ ! -e "$BAILIWICK_WORKSPACE/go" ]; do sleep 0.02; done\n'


def _begun(person: Person) -> bool:
    return any((person.home / "state" / "workspaces").glob("*/begun"))


def test_a_killed_run_is_interrupted_wherever_it_is_shown(person: Person) -> None:
    """`running` would tell somebody to wait for a process that is gone; the command that is named works."""
    flow = person.workflow("slow", FLOW, hold_sh=HOLD)
    process = person.starts("run", flow)
    try:
        until(lambda: _begun(person))
        assert person.runs("runs", "show", "slow", "--json").json()["state"] == "running"
    finally:
        end(process)
    (listed,) = person.runs("runs", "list", "--json").json()["runs"]
    assert listed["state"] == "interrupted"
    assert person.runs("runs", "list", "--state", "running", "--json").json()["runs"] == []
    assert [one["run"] for one in person.runs("status", "--json").json()["interrupted"]] == ["slow-default"]
    pages: tuple[tuple[str, ...], ...] = (("runs", "show"), ("why",), ("logs",), ("runs", "tree"))
    for page in pages:
        assert person.runs(*page, "slow", "--json").json()["state"] == "interrupted", page
    commands: tuple[tuple[str, ...], ...] = (("status",), ("runs", "list"), ("runs", "show", "slow"), ("why", "slow"))
    for command in commands:
        told = person.runs(*command).out.lower()
        assert "interrupted" in told, command
        assert "running" not in told.replace("no worker is running it", ""), command
    why = person.runs("why", "slow", "--json").json()["reasons"][0]
    assert (why["topic"], why["lines"]) == ("interrupted", ["go on with: bailiwick resume slow-default"])
    for workspace in (person.home / "state" / "workspaces").iterdir():
        (workspace / "go").touch()
    assert person.runs("resume", "slow-default", timeout=600).code == 0


def test_status_watch_shows_what_changed_as_one_document_each(person: Person) -> None:
    """A second terminal that stays open; Ctrl-C ends it."""
    flow = person.workflow("slow", FLOW, hold_sh=HOLD)
    watching = person.starts("status", "--watch", "--json")
    assert watching.stdout is not None
    process = person.starts("run", flow)
    try:
        until(lambda: _begun(person))
        for state in ("running", "interrupted"):
            while True:
                seen = json.loads(watching.stdout.readline())
                if [one["run"] for one in seen[state]] == ["slow-default"]:
                    break
            end(process)
        watching.send_signal(signal.SIGINT)
        assert watching.wait(600) == 130
    finally:
        end(watching)
        end(process)
