"""Real projects through prepare and gate: a pinned package from its real registry, then no network at gate time.

The command runs as its own process, as a person starts it: what it reaches is up to the sandbox, not to these tests.
Where the registry is out of reach the tests are skipped, and say so; in CI that is a failure.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.reading import ROOT
from tests.needs import lack
from tests.unit.gate.gate_stage import real_sandbox
from tests.unit.git.repository_setup import RepositorySetup, make_scene

pytestmark = pytest.mark.slow

PYPROJECT = """
[project]
name = "shop"
version = "0.1.0"
requires-python = ">=3.11"
dependencies = ["six==1.16.0"]
[dependency-groups]
dev = ["pytest>=8"]
[tool.uv]
package = false
"""
HOSTS = ("pypi.org", "files.pythonhosted.org", "registry.npmjs.org")


@pytest.fixture
def scene(tmp_path: Path) -> RepositorySetup:
    real_sandbox()
    made = make_scene(tmp_path)
    listed = json.dumps(list(HOSTS))
    made.put({"config/config.yaml": f"sandbox: {{allow: {listed}}}\n"}, tmp_path / "bw")
    (tmp_path / "bin").mkdir()
    return made


def _tool(scene: RepositorySetup, name: str, *places: Path) -> None:
    """Put a program where the sandbox may see it; without it there is nothing to try."""
    found = shutil.which(name) or next((str(place) for place in places if place.is_file()), None)
    if found is None:
        lack(f"{name} is not installed")
    if name == "uv":
        shutil.copy2(found, scene.top / "bin" / "uv")


def _run(scene: RepositorySetup, *argv: str) -> subprocess.CompletedProcess[str]:
    path = f"{scene.top / 'bin'}:{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "BAILIWICK_HOME": str(scene.top / "bw")}
    return subprocess.run(argv, cwd=scene.repo, env=env, capture_output=True, text=True, check=False, timeout=600)


def _gate(scene: RepositorySetup) -> dict[str, object]:
    done = _run(scene, sys.executable, "-m", "bailiwick", "gate", "--json")
    assert done.stdout, done.stderr
    data: dict[str, object] = json.loads(done.stdout)
    return {**data, "exit": done.returncode}


def test_a_python_project_with_a_lock_file_is_prepared_and_checked(scene: RepositorySetup) -> None:
    """The most usual project there is: `uv.lock`, a pinned package, pytest from the environment."""
    _tool(scene, "uv", ROOT / ".venv-tools" / "bin" / "uv")
    scene.put(
        {
            "pyproject.toml": PYPROJECT,
            "shop.py": "import six\n\n\ndef double(x):\n    return six.integer_types[0](x) * 2\n",
            "tests/test_shop.py": "from shop import double\n\n\ndef test_double():\n    assert double(4) == 8\n",
            ".bailiwick/gate.yaml": (
                "prepare: [[uv, sync, --frozen]]\nchecks:\n"
                "  - {name: tests, run: [python, -m, pytest, -q], kind: pytest}\n"
                "  - {name: offline, run: [python, -c, 'import six, sys; assert sys.prefix.endswith(\".venv\")']}\n"
            ),
        }
    )
    locked = _run(scene, str(scene.top / "bin" / "uv"), "lock")
    if locked.returncode != 0:
        lack(locked.stderr[-300:])
    scene.commit({})
    green = _gate(scene)
    assert (green["exit"], green["verdict"]) == (0, "green"), green
    scene.put({"shop.py": "def double(x):\n    return x + 2\n"})
    red = _gate(scene)
    assert (red["exit"], red["verdict"], red["environment"]) == (1, "red", green["environment"])


def test_a_node_project_with_a_lock_file_is_prepared_and_checked(scene: RepositorySetup) -> None:
    """`npm ci` once with the registry, `npm test` without any network."""
    _tool(scene, "npm")
    package = {"name": "shop", "version": "1.0.0", "private": True, "scripts": {"test": "node --test"}}
    scene.put(
        {
            "package.json": json.dumps({**package, "dependencies": {"left-pad": "1.3.0"}}),
            "pad.js": "const pad = require('left-pad');\nmodule.exports = (x) => pad(String(x), 5, '0');\n",
            "pad.test.js": (
                "const test = require('node:test');\nconst assert = require('node:assert');\n"
                "test('pads', () => assert.equal(require('./pad')(7), '00007'));\n"
            ),
        }
    )
    locked = _run(scene, "npm", "install", "--package-lock-only", "--no-audit", "--no-fund")
    if locked.returncode != 0:
        lack(locked.stderr[-300:])
    scene.commit({})
    green = _gate(scene)
    assert (green["exit"], green["verdict"], green["origin"]) == (0, "green", "detected"), green
    scene.put({"pad.js": "module.exports = String;\n"})
    assert _gate(scene)["verdict"] == "red"
