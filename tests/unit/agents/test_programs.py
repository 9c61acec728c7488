"""Which file is executed for an agent."""

from __future__ import annotations

import os
import platform
import sys
from typing import TYPE_CHECKING

import pytest

from bailiwick.agents.backends import claude, codex, copilot

if TYPE_CHECKING:
    from pathlib import Path

    from bailiwick.agents.programs import Program


@pytest.fixture(autouse=True)
def _linux_x64(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(sys, "platform", "linux")


def _file(path: Path, content: str = "\x7fELF") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    path.chmod(0o755)
    return path


def _installed(modules: Path, script: str, name: str) -> Path:
    """What npm makes: a link in `.bin` to a script in the package."""
    target = _file(modules / script, "#!/usr/bin/env node\n")
    link = modules / ".bin" / name
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(os.path.relpath(target, link.parent))
    return link


@pytest.mark.parametrize(
    ("program", "script", "native"),
    [
        (
            codex.PROGRAM,
            "@openai/codex/bin/codex.js",
            "@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex",
        ),
        (copilot.PROGRAM, "@github/copilot/npm-loader.js", "@github/copilot-linux-x64/copilot"),
        (claude.PROGRAM, "@anthropic-ai/claude-code/cli-wrapper.cjs", "@anthropic-ai/claude-code-linux-x64/claude"),
        (claude.PROGRAM, "@anthropic-ai/claude-code/cli.js", "@anthropic-ai/claude-code-linux-x64-musl/claude"),
        (
            codex.PROGRAM,
            "@openai/codex/bin/codex.js",
            "@openai/codex/node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex",
        ),
    ],
)
def test_the_native_binary_is_found_behind_the_script(
    tmp_path: Path, program: Program, script: str, native: str
) -> None:
    """A signal to the script would leave the agent and its tools alive."""
    modules = tmp_path / "lib" / "node_modules"
    link = _installed(modules, script, program.name)
    binary = _file(modules / native)
    assert program.path({"PATH": str(link.parent)}) == str(binary)


def test_a_binary_on_the_path_is_taken_as_it_is(tmp_path: Path) -> None:
    """Nothing stands in front of it, whatever else is installed."""
    binary = _file(tmp_path / "bin" / "claude")
    _file(tmp_path / "node_modules/@anthropic-ai/claude-code-linux-x64/claude")
    assert claude.PROGRAM.path({"PATH": str(binary.parent)}) == str(binary)


def test_a_script_without_a_binary_is_better_than_nothing(tmp_path: Path) -> None:
    """Somebody's own wrapper is run as it is."""
    script = _file(tmp_path / "claude", "#!/bin/sh\n")
    assert claude.PROGRAM.path({"PATH": str(tmp_path)}) == str(script)


def test_a_program_that_is_not_there_keeps_its_name() -> None:
    """It may come back while an update replaces it: the launcher tries again."""
    assert claude.PROGRAM.path({"PATH": ""}) == "claude"


def test_a_chosen_program_wins(tmp_path: Path) -> None:
    """A person may pin a version by its path."""
    mine = _file(tmp_path / "claude-2.1.197")
    assert claude.PROGRAM.path({"PATH": ""}, str(mine)) == str(mine)
    assert claude.PROGRAM.path({"PATH": ""}, "/nowhere/claude") == "/nowhere/claude"
