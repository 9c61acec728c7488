"""Secrets of script nodes: given to that one process, and to nothing that is kept."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

from bailiwick.config.secrets import Secrets
from bailiwick.config.variables import Environment
from bailiwick.engine.graph import Output, Work
from bailiwick.ids import Json
from bailiwick.lang.templates import Templates
from bailiwick.processes.command import Command, Exit
from bailiwick.processes.proc import run_process
from bailiwick.runtime.kinds import AttemptRequest, Done, Failed
from bailiwick.runtime.script import Fill, ScriptKind

SHOW = """import json, os
print(json.dumps({"seen": os.environ["TOKEN"] == "Bearer t0p-secret", "raw": os.environ["RAW"]}))
"""


class SmallIo:
    """Runs what it is told, with a small environment."""

    def __init__(self, **env: str) -> None:
        self.env = {"PATH": os.environ["PATH"], **env}
        self.cancel = asyncio.Event()

    async def run(self, command: Command) -> Exit:
        return await run_process(command, cancel=self.cancel)

    def environment(self) -> dict[str, str]:
        return dict(self.env)

    def show(self, text: str) -> None: ...

    def observe(self, data: dict[str, Json]) -> None: ...


def go(
    folder: Path, env: dict[str, Json], context: dict[str, Json], fill: Fill | None = None
) -> tuple[Json, Done | Failed]:
    """What the journal gets of the node, and how its attempt ended."""
    (folder / "show.py").write_text(SHOW)
    outputs = (Output("seen"), Output("raw"))
    node = Work(id="n", type="script", spec={"script": "show.py", "env": env}, outputs=outputs, next="end")
    kind = ScriptKind(fill)
    prepared = kind.prepare(node, context.__getitem__, Templates(folder, strict=False)).value
    request = AttemptRequest("run", "run", 1, "key", "", node, 1, 1, 1, 1, prepared, folder, folder, folder)
    return prepared, asyncio.run(kind.attempt(request, SmallIo(MY_TOKEN="t0p-secret")))


def test_a_reference_in_env_is_resolved_for_the_process_and_journaled_as_a_reference(tmp_path: Path) -> None:
    """The request is kept for ever; the secret is in none of it."""
    prepared, result = go(tmp_path, {"TOKEN": "Bearer ${secret:env:MY_TOKEN}", "RAW": "x"}, {})
    assert isinstance(result, Done)
    assert result.outputs["seen"] is True
    assert prepared["env"]["TOKEN"] == "Bearer ${secret:env:MY_TOKEN}"
    assert "t0p-secret" not in json.dumps([prepared, result.log])


def test_the_given_provider_resolves(tmp_path: Path) -> None:
    """The configuration says where secrets are; the operator's variables need not hold them."""
    fill = Secrets(environment=Environment({"ELSEWHERE": "t0p-secret"})).filled
    _, result = go(tmp_path, {"TOKEN": "Bearer ${secret:ELSEWHERE}", "RAW": "x"}, {}, fill)
    assert isinstance(result, Done)
    assert result.outputs["seen"] is True


def test_a_reference_that_comes_with_a_value_stays_text(tmp_path: Path) -> None:
    """An issue that says ${secret:…} must not get one into a process: values never become templates."""
    env: dict[str, Json] = {"TOKEN": "Bearer ${secret:env:MY_TOKEN}", "RAW": "{{ issue }}"}
    _, result = go(tmp_path, env, {"issue": "${secret:env:MY_TOKEN}"})
    assert isinstance(result, Done)
    assert result.outputs["raw"] == "${secret:env:MY_TOKEN}"


@pytest.mark.parametrize(
    ("value", "words"),
    [("${secret:env:NOT_SET}", "the variable NOT_SET is not set"), ("{{ a }}${secret:env:MY_TOKEN}", "mixes a secret")],
)
def test_a_secret_that_is_not_there_fails_the_node_before_anything_starts(
    tmp_path: Path, value: str, words: str
) -> None:
    """A process without its token would fail later, and worse; trying again can't help."""
    _, result = go(tmp_path, {"TOKEN": value, "RAW": "x"}, {"a": "1"})
    assert isinstance(result, Failed)
    assert result.failure.kind == "not_found"
    assert words in result.failure.message
