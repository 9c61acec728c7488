"""The backends that run programs, and the simulated one, keep every promise of the port."""

from __future__ import annotations

import sys
from pathlib import Path

from bailiwick.agents.backends.claude import ClaudeBackend
from bailiwick.agents.backends.codex import CodexBackend
from bailiwick.agents.backends.command import CommandBackend
from bailiwick.agents.backends.copilot import CopilotBackend
from bailiwick.agents.backends.simulate import SimulateBackend
from bailiwick.agents.port import Backend, Turn
from bailiwick.agents.settings import AgentSettings
from bailiwick.testing.backend_conformance import BackendCase, BackendConformance, Behaviour
from tests.conformance.fake_clis import environment, install, write

AGENT = {
    "answers": "import hashlib, sys; print(hashlib.sha256(READ).hexdigest())",
    "fails": "import sys; print('half an answer'); sys.exit('broken')",
    "hangs": "import signal; print('thinking', flush=True); signal.pause()",
    "garbage": "import os; os.write(1, b'\\xff\\x00\\x1b[2J{{{' * 999)",
}
SIMULATED = {
    "answers": "{answer: {}}",
    "fails": "{outage: true}",
    "hangs": "{hang: true}",
    "garbage": "{bad_json: true}",
}


def _turn(tmp_path: Path) -> Turn:
    return Turn("key", "Say hello", None, tmp_path, environment(tmp_path))


def _bench(backend: Backend, tmp_path: Path, behaviour: Behaviour) -> BackendCase:
    install(tmp_path / "bin", backend.name, behaviour)
    return BackendCase(backend, _turn(tmp_path))


class TestClaude(BackendConformance):
    """The suite, with a stand-in for Claude Code."""

    def bench(self, tmp_path: Path, behaviour: Behaviour) -> BackendCase:
        return _bench(ClaudeBackend(), tmp_path, behaviour)


class TestCodex(BackendConformance):
    """The suite, with a stand-in for Codex."""

    def bench(self, tmp_path: Path, behaviour: Behaviour) -> BackendCase:
        return _bench(CodexBackend(), tmp_path, behaviour)


class TestCopilot(BackendConformance):
    """The suite, with a stand-in for Copilot CLI."""

    def bench(self, tmp_path: Path, behaviour: Behaviour) -> BackendCase:
        return _bench(CopilotBackend(), tmp_path, behaviour)


class TestCommandByInput(BackendConformance):
    """The suite, with a program that reads its prompt from standard input."""

    def bench(self, tmp_path: Path, behaviour: Behaviour) -> BackendCase:
        code = AGENT[behaviour].replace("READ", "sys.stdin.buffer.read()")
        agent = write(tmp_path / "agent", f"#!{sys.executable} -IS\n{code}\n")
        return BackendCase(CommandBackend(str(agent)), _turn(tmp_path))


class TestCommandByFile(BackendConformance):
    """The suite, with a program that is given a file."""

    def bench(self, tmp_path: Path, behaviour: Behaviour) -> BackendCase:
        code = AGENT[behaviour].replace("READ", "open(sys.argv[1], 'rb').read()")
        agent = write(tmp_path / "agent", f"#!{sys.executable} -IS\n{code}\n")
        return BackendCase(CommandBackend(f"{agent} {{prompt_file}} {{model}}"), _turn(tmp_path))


class TestSimulate(BackendConformance):
    """The suite, with the simulated agent."""

    echoes = False

    def bench(self, tmp_path: Path, behaviour: Behaviour) -> BackendCase:
        script = tmp_path / "script.yaml"
        script.write_text(f"nodes: {{'*': [{SIMULATED[behaviour]}]}}\n", encoding="utf-8")
        return BackendCase(SimulateBackend.for_settings(AgentSettings(script=script)), _turn(tmp_path))
