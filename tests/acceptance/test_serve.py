"""`bailiwick serve` as a process: found, asked with a token, given a run, told to end."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from bailiwick.testing.polling import until
from tests.acceptance.command import Person, end

QUICK = """
version: 1
name: quick
params: {who: {default: you}}
start: greet
nodes:
  - {id: greet, type: script, script: scripts/greet.sh, outputs: [{key: text}], next: done}
  - {id: done, type: terminal}
"""


def prepare(person: Person) -> None:
    """A person who lets clients start one workflow of theirs."""
    folder = person.home / "config" / "workflows" / "quick"
    (folder / "scripts").mkdir(parents=True)
    (folder / "workflow.yaml").write_text(QUICK)
    (folder / "scripts" / "greet.sh").write_text('echo "{\\"text\\": \\"hello\\"}"\n')
    (person.home / "config" / "config.yaml").write_text("version: 1\nmcp: {workflows: [quick], budget: 2}\n")


@contextmanager
def serving(person: Person, *words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The service and its address, read off what it prints."""
    process = person.starts("serve", "--port", "0", *words)
    try:
        assert process.stdout is not None
        first = process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:\d+", first)
        assert found, first + (process.stderr.read() if process.stderr else "")
        yield process, found[0]
    finally:
        end(process)


def status_of(url: str, token: str = "") -> int:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=20) as reply:
            return int(reply.status)
    except urllib.error.HTTPError as error:
        return error.code


def calls(url: str, token: str, *asked: tuple[str, dict[str, Any]]) -> list[Any]:
    """What some tools give, in order, to the official client."""
    from tests.unit.service.desk import client

    async def go() -> list[Any]:
        async with client(url, token) as one:
            return [(await one.call_tool(name, arguments)).structured_content for name, arguments in asked]

    return asyncio.run(go())


def test_the_service_walks_a_run_that_a_client_starts_and_ends_when_told(person: Person) -> None:
    """The whole way: an address and a token on the terminal, a run by name, its end, SIGTERM."""
    prepare(person)
    with serving(person) as (process, url):
        file = person.home / "state" / "token"
        token = file.read_text().strip()
        assert file.stat().st_mode & 0o777 == 0o600
        assert status_of(f"{url}/readyz") == 200
        assert status_of(f"{url}/mcp") == 401
        taken = person.runs("serve", "--port", url.rpartition(":")[2])
        assert taken.code == 8
        assert f"(pid {process.pid})" in taken.err
        begun = calls(url, token, ("run_start", {"workflow": "quick"}))[0]
        assert begun["limits"]["usd"] == 2
        found: list[Any] = []

        def over() -> bool:
            found[:] = calls(url, token, ("run_result", {"run_id": begun["run_id"]}))
            return bool(found[0]["over"])

        until(over, 30, "the run's end")
        assert (found[0]["status"], found[0]["context"]["text"]) == ("done", "hello")
        assert found[0]["started_by"] == "mcp:mcp@operator"
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=30)
    assert process.returncode == 0, err
    assert err == ""
    snippet = json.loads(out[out.index("{") :])
    assert snippet["mcpServers"]["bailiwick"]["url"] == f"{url}/mcp"
    assert token not in out


@pytest.mark.nightly
def test_reading_without_a_token_is_loud_and_reads_only(person: Person) -> None:
    """Whoever allows it has to see that they did."""
    prepare(person)
    with serving(person, "--allow-anonymous-loopback", "--no-worker") as (process, url):
        assert calls(url, "", ("approvals_list", {})) == [{"approvals": []}]
        assert calls(url, "", ("run_start", {"workflow": "quick"})) == [None]
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    assert "WARNING: --allow-anonymous-loopback" in err
    assert process.returncode == 130


@pytest.mark.nightly
def test_tokens_are_made_listed_and_removed_while_it_serves(person: Person) -> None:
    """A leaked token is stopped without stopping everybody."""
    with serving(person) as (_, url):
        made = person.runs("serve", "token", "add", "ci", "--scope", "read").out.strip()
        assert status_of(f"{url}/mcp", made) != 401
        assert person.runs("serve", "token", "list").out.split() == ["ci", "read"]
        assert person.runs("serve", "token", "remove", "ci").code == 0
        assert status_of(f"{url}/mcp", made) == 401
