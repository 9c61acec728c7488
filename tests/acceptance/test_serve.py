"""`bailiwick serve` as a process: found, asked with a token, given a run, told to end."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Service:
    """A service that runs: its process, its address, and what it printed."""

    process: subprocess.Popen[str]
    url: str
    told: str

    def end(self, number: signal.Signals) -> tuple[int, str]:
        """Tell it to end; gives its exit code and what it said on standard error."""
        self.process.send_signal(number)
        _, err = self.process.communicate(timeout=600)
        return self.process.returncode, err


@contextmanager
def serving(person: Person, *words: str) -> Iterator[Service]:
    """The service, as soon as it has said everything about itself."""
    process = person.starts("serve", "--port", "0", *words)
    try:
        assert process.stdout is not None
        told = "".join(iter_until(process.stdout, "}\n"))
        found = re.search(r"http://127\.0\.0\.1:\d+", told)
        assert found, told + (process.stderr.read() if process.stderr else "")
        yield Service(process, found[0], told)
    finally:
        end(process)


def iter_until(lines: Iterable[str], last: str) -> Iterator[str]:
    """The lines up to one that ends them."""
    for line in lines:
        yield line
        if line == last:
            return


def status_of(url: str, token: str = "") -> int:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=600) as reply:
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


@pytest.mark.needs("sandbox")
def test_the_service_walks_a_run_that_a_client_starts_and_ends_when_told(person: Person) -> None:
    """The whole way: an address and a token on the terminal, a run by name, its end, SIGTERM."""
    prepare(person)
    with serving(person) as service:
        url = service.url
        file = person.home / "state" / "token"
        token = file.read_text().strip()
        assert file.stat().st_mode & 0o777 == 0o600
        assert status_of(f"{url}/readyz") == 200
        assert status_of(f"{url}/mcp") == 401
        taken = person.runs("serve", "--port", url.rpartition(":")[2])
        assert taken.code == 8
        assert f"(pid {service.process.pid})" in taken.err
        begun = calls(url, token, ("run_start", {"workflow": "quick"}))[0]
        assert begun["limits"]["usd"] == 2
        found: list[Any] = []

        def over() -> bool:
            found[:] = calls(url, token, ("run_result", {"run_id": begun["run_id"]}))
            return bool(found[0]["over"])

        until(over, what="the run's end")
        assert (found[0]["status"], found[0]["context"]["text"]) == ("done", "hello")
        assert found[0]["started_by"] == "mcp:mcp@operator"
        assert service.end(signal.SIGTERM) == (0, "")
    snippet = json.loads(service.told[service.told.index("{\n") :])
    assert snippet["mcpServers"]["bailiwick"]["url"] == f"{url}/mcp"
    assert token not in service.told


@pytest.mark.nightly
def test_reading_without_a_token_is_loud_and_reads_only(person: Person) -> None:
    """Whoever allows it has to see that they did."""
    prepare(person)
    with serving(person, "--allow-anonymous-loopback", "--no-worker") as service:
        assert calls(service.url, "", ("approvals_list", {})) == [{"approvals": []}]
        assert calls(service.url, "", ("run_start", {"workflow": "quick"})) == [None]
        code, err = service.end(signal.SIGINT)
    assert "WARNING: --allow-anonymous-loopback" in err
    assert code == 130


@pytest.mark.nightly
def test_tokens_are_made_listed_and_removed_while_it_serves(person: Person) -> None:
    """A leaked token is stopped without stopping everybody."""
    with serving(person) as service:
        url = service.url
        made = person.runs("serve", "token", "add", "ci", "--scope", "read").out.strip()
        assert status_of(f"{url}/mcp", made) != 401
        assert person.runs("serve", "token", "list").out.split() == ["ci", "read"]
        assert person.runs("serve", "token", "remove", "ci").code == 0
        assert status_of(f"{url}/mcp", made) == 401
