"""More small programs, healed by the real command with a scripted agent that plays good, bad and stuck."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import yaml

from bailiwick.pipelines.simulation import write_repository
from tests.acceptance.command import EXAMPLES, Person
from tests.acceptance.toolbox import python_with_pytest
from tests.security.programs import PROGRAMS, Program

__all__ = ["python_with_pytest"]
pytestmark = [pytest.mark.needs("sandbox"), pytest.mark.slow]
OUTCOMES = {"good": 0, "bad": 0, "stuck": 6}
"""How the command ends: proposed at once, proposed after a second call, handed to a person."""
CALLS = {"good": 1, "bad": 2}
SAMPLE = (("roman", "bad"),)
"""What every change is judged by; the rest runs at night."""
CASES = [
    pytest.param(program, play, id=f"{program.name}-{play}", marks=() if often else pytest.mark.nightly)
    for program in PROGRAMS
    for play in OUTCOMES
    for often in ((program.name, play) in SAMPLE,)
]


def _script(program: Program, play: str) -> str:
    """What the agent leaves behind in each fix call."""
    texts = {
        "good": [program.source],
        "bad": [program.mended_badly(), program.source],
        "stuck": [program.mended_badly(number) for number in range(4)],
    }[play]
    return yaml.safe_dump({"nodes": {"fix": [[{"edit": {program.path: text}}] for text in texts]}})


@pytest.mark.parametrize(("program", "play"), CASES)
def test_a_program_ends_as_expected(person: Person, tmp_path: Path, program: Program, play: str) -> None:
    """Healed and proposed with the right text, or handed to a person without a proposal."""
    person.extra["BAILIWICK_RETENTION_MIN_FREE"] = "100MB"
    files = {
        **program.base(),
        "shop/__init__.py": "",
        "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["."]\n',
        ".bailiwick/gate.yaml": (EXAMPLES / "heal" / "gate.yaml").read_text(),
    }
    person.cwd = write_repository(person.cwd / program.name, files)
    script = tmp_path / "script.yaml"
    script.write_text(_script(program, play))
    result = person.runs("self-heal", "--simulate", script, "--json", timeout=600)
    assert result.code == OUTCOMES[play], result.out + result.err
    document = result.json()
    if result.code:
        assert document["context"].get("proposal") is None
        return
    assert document["context"]["calls"] == CALLS[play]
    assert _proposed(person.cwd, program.path) == program.source


def _proposed(repository: Path, path: str) -> str:
    """A file as the one proposed branch has it."""
    listed = ("git", "for-each-ref", "--format=%(refname:short)", "refs/heads/agent/")
    branch = subprocess.run(listed, cwd=repository, capture_output=True, text=True, check=True).stdout.split()[0]
    return subprocess.run(
        ["git", "show", f"{branch}:{path}"], cwd=repository, capture_output=True, text=True, check=True
    ).stdout
