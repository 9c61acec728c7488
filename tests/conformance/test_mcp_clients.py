"""Clients that we did not write: the Inspector calls every tool, the conformance suite plays its scenarios."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from bailiwick.skills.tools import TABLE
from tests.acceptance.command import BAILIWICK, ROOT, Person
from tests.acceptance.test_serve import prepare, serving
from tests.needs import lack

pytestmark = pytest.mark.slow

CLIENTS = ROOT / ".mcp-clients"
PACKAGES = CLIENTS / "node_modules" / "@modelcontextprotocol"
INSPECTOR = PACKAGES / "inspector" / "clients" / "launcher" / "build" / "index.js"
CONFORMANCE = PACKAGES / "conformance" / "dist" / "index.js"

BOTH = ("tools-list", "server-sse-multiple-streams", "resources-list", "prompts-list", "dns-rebinding-protection")
PLAYED = {
    "2025-11-25": (*BOTH, "server-initialize", "server-session-lifecycle", "ping"),
    "2026-07-28": (*BOTH, "sep-2164-resource-not-found", "caching", "http-header-validation"),
}
"""Scenarios of each version of the protocol that have to pass."""
STATELESS = "server-stateless"
DIAGNOSED = {
    "sep-2575-server-rejects-undeclared-capability", "sep-2575-missing-capability-http-400",
    "sep-2575-http-server-no-independent-requests-on-stream", "sep-2575-server-no-log-without-loglevel",
}  # fmt: skip
"""The checks of that scenario which call a diagnostic tool of the suite's own example server."""
ASKS_NOTHING = "the server asks nothing of its client: questions go to the person, by `approvals_list`"
NOT_PLAYED = {
    "logging-set-level": "the capability is not offered: progress tells what goes on, and newer versions dropped it",
    "completion-complete": "the capability is not offered: no argument has a list of values to choose from",
    **dict.fromkeys(
        (
            "tools-call-simple-text", "tools-call-image", "tools-call-audio", "tools-call-embedded-resource",
            "tools-call-mixed-content", "tools-call-with-logging", "tools-call-error", "tools-call-with-progress",
            "json-schema-2020-12",
        ),
        "calls a tool of the suite's own example server; ours are called by the Inspector here, and results, errors "
        "and progress are covered by tests/unit/service/test_mcp.py",
    ),
    **dict.fromkeys(
        ("tools-call-sampling", "tools-call-elicitation", "elicitation-sep1034-defaults", "elicitation-sep1330-enums"),
        ASKS_NOTHING,
    ),
    **dict.fromkeys(
        (
            f"input-required-result-{name}" for name in (
                "basic-elicitation", "basic-sampling", "basic-list-roots", "request-state", "multiple-input-requests",
                "multi-round", "missing-input-response", "non-tool-request", "result-type", "unsupported-methods",
                "tampered-state", "capability-check", "ignore-extra-params", "validate-input",
            )
        ),
        ASKS_NOTHING,
    ),
    **dict.fromkeys(
        (
            f"tasks-{name}" for name in (
                "lifecycle", "capability-negotiation", "wire-fields", "request-state-removal", "mrtr-input",
                "request-headers", "dispatch-and-envelope", "status-notifications", "required-task-error",
                "mrtr-composition",
            )
        ),
        "an extension that is not offered: what takes long is a run, by `run_start`",
    ),
    **dict.fromkeys(
        ("sep-2640-skills-directory", "sep-2640-skills-enumeration", "sep-2640-skills-manifest"),
        "an extension that is not offered: disciplines are prompts and resources",
    ),
    "http-custom-header-server-validation": "no tool of ours takes an argument from a header",
    "server-sse-polling": "streams are not resumed: a result that was missed is in the call log and in `run_result`",
    **dict.fromkeys(
        ("resources-read-text", "resources-read-binary", "resources-templates-read"),
        "reads an address of the suite's own example server; see tests/unit/service/test_mcp_resources.py",
    ),
    **dict.fromkeys(
        ("resources-subscribe", "resources-unsubscribe"), "the capability is not offered: nothing is pushed"
    ),
    **dict.fromkeys(
        ("prompts-get-simple", "prompts-get-with-args", "prompts-get-embedded-resource", "prompts-get-with-image"),
        "gets a prompt of the suite's own example server; ours are got in tests/unit/service/test_mcp.py",
    ),
}  # fmt: skip
"""Scenarios that can't be played against this server, each with its reason."""
ARGUMENTS: dict[str, dict[str, str]] = {
    "tdd_red": {"spec": "x", "test_cmd": "true"},
    "tdd_green": {"test_path": "t.py", "test_cmd": "true"},
    "tdd_refactor": {"test_path": "t.py", "impl_path": "i.py", "test_cmd": "true"},
    "review": {"files": '["a.py"]'},
    "debug": {"error": "boom"},
    "spec": {"requirements": "x"},
    "retrospective": {"session_id": "s1"},
    "trainer": {"session_id": "s1"},
    "brain_query": {"query": "x"},
    "brain_write": {"note": "Learned."},
    "brain_answer": {"question": "why?"},
    "session_log": {"session_id": "s1"},
    "run_start": {"workflow": "quick"},
    "run_status": {"run_id": "quick-none"},
    "run_result": {"run_id": "quick-none"},
    "run_cancel": {"run_id": "quick-none"},
}
ANSWERS = {"brain_query", "brain_write", "session_log", "stats_models", "tier", "run_start", "approvals_list"}
"""Tools that give a result on an empty machine; the others say what is missing, as a tool error."""
PROJECTS = {"tdd_red", "tdd_green", "tdd_refactor", "review", "debug", "spec"}


@pytest.fixture(scope="module", autouse=True)
def _clients() -> None:
    """Go on only with the clients."""
    if not (CLIENTS / ".ready").exists():
        lack("the MCP clients are not installed (make clients)")


@pytest.fixture
def person(tmp_path: Path) -> Person:
    """Somebody with one workflow for clients."""
    (tmp_path / "work").mkdir()
    made = Person(tmp_path / "home", tmp_path / "work", {"HOME": str(tmp_path), "MCP_INSPECTOR_SECRET_STORE": "memory"})
    prepare(made)
    return made


class Target(NamedTuple):
    """Which server: words that stand before the method, and words after it."""

    first: list[str]
    last: list[str]


def node(person: Person, *words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [CLIENTS / "bin" / "node", *words],
        cwd=person.cwd,
        env=person.env(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def inspect(person: Person, target: Target, *words: str) -> Any:
    """The document that the Inspector prints; a tool error is one too."""
    done = node(person, INSPECTOR, "--cli", *target.first, *words, *target.last)
    assert done.returncode in (0, 5), done.stderr
    return json.loads(done.stdout)


def call(person: Person, target: Target, name: str) -> Any:
    given = {**ARGUMENTS.get(name, {}), **({"project_root": str(person.cwd)} if name in PROJECTS else {})}
    pairs = [word for key, value in given.items() for word in ("--tool-arg", f"{key}={value}")]
    return inspect(person, target, "--method", "tools/call", "--tool-name", name, *pairs)


def over_http(person: Person, url: str) -> Target:
    token = (person.home / "state" / "token").read_text().strip()
    return Target([f"{url}/mcp"], ["--header", f"Authorization: Bearer {token}"])


def over_stdio(person: Person) -> Target:
    kept = [f"{name}={value}" for name, value in person.env().items() if name in ("BAILIWICK_HOME", "PYTHONPATH")]
    given = [word for one in kept for word in ("-e", one)]
    return Target([], [*given, "--cwd", str(person.cwd), "--", str(BAILIWICK), "mcp"])


def scenarios(person: Person) -> set[str]:
    """The server scenarios that the suite has."""
    told = node(person, CONFORMANCE, "list").stdout.partition("Client scenarios")[0]
    return {line.split()[1] for line in told.splitlines() if line.startswith("  - ")}


def play(person: Person, url: str, *words: str) -> str:
    """What the suite prints of its scenarios."""
    return node(person, CONFORMANCE, "server", "--url", f"{url}/mcp", *words).stdout


def test_the_suite_s_scenarios_pass_and_the_inspector_lists_every_tool(person: Person) -> None:
    """What others wrote against the protocol finds what our own tests, written against our server, do not."""
    with serving(person, "--allow-anonymous-loopback") as service:
        told = {one: play(person, service.url, "--suite", "all", "--spec-version", one) for one in PLAYED}
        listed = inspect(person, over_http(person, service.url), "--method", "tools/list")
    for version, wanted in PLAYED.items():
        passed = {line.split()[1].rstrip(":") for line in told[version].splitlines() if line.startswith("✓")}
        assert set(wanted) <= passed, told[version][-4000:]
    assert {tool["name"] for tool in listed["tools"]} == {tool.name for tool in TABLE}


@pytest.mark.nightly
def test_a_server_without_sessions_fails_only_what_needs_the_suite_s_own_tools(person: Person) -> None:
    """Most checks of this scenario apply; those that don't are known by name."""
    with serving(person, "--allow-anonymous-loopback") as service:
        told = play(person, service.url, "--scenario", STATELESS, "--spec-version", "2026-07-28")
    plain = re.sub(r"\x1b\[[0-9;]*m", "", told)
    assert set(re.findall(r"\[(\S+)\s*\] FAILURE", plain)) == DIAGNOSED
    assert len(re.findall(r"\] SUCCESS", plain)) >= 20


@pytest.mark.nightly
def test_every_scenario_is_played_or_has_a_reason_why_not(person: Person) -> None:
    """A new version of the suite must not bring scenarios that nobody looked at."""
    assert scenarios(person) == {STATELESS, *(name for names in PLAYED.values() for name in names), *NOT_PLAYED}


@pytest.mark.nightly
@pytest.mark.parametrize("transport", ["http", "stdio"])
def test_the_inspector_calls_every_tool(person: Person, transport: str) -> None:
    """Each gives what its schema promises, or says what is missing; none breaks the client."""
    with serving(person) as service:
        target = over_http(person, service.url) if transport == "http" else over_stdio(person)
        found = {tool.name: call(person, target, tool.name) for tool in TABLE}
    failed = {name for name, result in found.items() if result["isError"]}
    assert failed & ANSWERS == set(), {name: found[name]["content"] for name in failed & ANSWERS}
    assert all(result["content"][0]["text"] for result in found.values())
    assert all(isinstance(found[name]["structuredContent"], dict) for name in ANSWERS)


@pytest.mark.nightly
def test_the_inspector_reads_a_discipline_as_prompt_and_as_resource(person: Person) -> None:
    """Both ways lead to the same text."""
    target = over_stdio(person)
    prompt = inspect(person, target, "--method", "prompts/get", "--prompt-name", "review")
    read = inspect(person, target, "--method", "resources/read", "--uri", "bailiwick://skills/review")
    assert read["contents"][0]["text"] == prompt["messages"][0]["content"]["text"]
