"""README and tutorial are followed literally: every block, in order, with real commands and simulated agents."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

from bailiwick.testing.model_server.script import Say
from tests.acceptance.command import BAILIWICK, ROOT, Person
from tests.acceptance.documents import PlayedBlock, differences, play
from tests.acceptance.toolbox import python_with_pytest
from tests.model_places import ModelPlaces, Stub
from tests.unit.gate.gate_stage import real_sandbox

__all__ = ["python_with_pytest"]
LIMIT = 1500.0
pytestmark = pytest.mark.timeout(2 * LIMIT)
LEFT_OUT = {
    "make demo": "test_runs.py runs the demo; `make` would set a whole environment up",
    "make demo    # a worker is killed and nothing is done twice; an issue becomes a proposal; a cheat is found out": (
        "test_runs.py runs the demo; `make` would set a whole environment up"
    ),
    "make test    # the tests": "it is what runs this test",
}
REVIEW = Say(json.dumps({"status": "pass", "message": "nothing to say", "findings": []}))


def _env(person: Person, tmp_path: Path, ollama: str) -> dict[str, str]:
    """A home of its own, the command on the path, local models simulated; nothing of the developer's settings."""
    home = tmp_path / "person"
    home.mkdir(exist_ok=True)
    kept = {name: value for name, value in person.env().items() if name != "BAILIWICK_HOME"}
    path = f"{os.environ['PATH']}{os.pathsep}{Path(BAILIWICK).parent}"
    more = {"HOME": str(home), "PATH": path, "OLLAMA_HOST": ollama, "BAILIWICK_RETENTION_MIN_FREE": "100MB"}
    return {**kept, **more}


def _follow(page: str, person: Person, tmp_path: Path) -> list[PlayedBlock]:
    async def history() -> list[PlayedBlock]:
        async with ModelPlaces({"ollama": Stub(says=(REVIEW,) * 8)}) as places:
            env = _env(person, tmp_path, places.url("ollama"))
            return await asyncio.to_thread(play, ROOT / page, person, env, LEFT_OUT, LIMIT)

    return asyncio.run(history())


@pytest.mark.parametrize("page", ["README.md", pytest.param("docs/tutorial.md", marks=pytest.mark.nightly)])
@pytest.mark.slow
def test_a_page_can_be_followed_literally(person: Person, tmp_path: Path, page: str, python_with_pytest: None) -> None:
    """What a page tells people to type works in this order, and prints what the page shows."""
    real_sandbox()
    played = _follow(page, person, tmp_path)
    wrong = [f"{differences(one)}\n--- printed:\n{one.printed}" for one in played if differences(one)]
    assert wrong == []
    assert not any("error[" in one.printed for one in played if "error[" not in one.block.text)
