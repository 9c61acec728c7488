"""Pages as people follow them: every block in order, in one shell; then what is shown is compared with what is printed.

A `console` block has commands after `$ ` and what they print; an `sh` block has commands only; a block that begins
with `# file: NAME` is a file of the workflow that the `name:` of its `workflow.yaml` says. What is shown has to be
among what is printed: numbers, times, ids and spaces aside, `…` for anything.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.acceptance.command import Person
from tests.unit.docs.pages import Block, blocks

FILE = re.compile(r"# file: (\S+)\n")
MARK = "@@ block"


@dataclass(frozen=True, slots=True)
class PlayedBlock:
    """A block and everything that its commands printed."""

    block: Block
    printed: str


def commands_of(block: Block) -> list[str]:
    """The command lines of a block."""
    lines = block.text.splitlines()
    if block.language == "console":
        return [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    return lines if block.language == "sh" else []


def shown_by(block: Block) -> list[str]:
    """The lines that a block says are printed."""
    if block.language != "console":
        return []
    lines = block.text.splitlines()
    return [line for line in lines if not line.startswith("$ ") and line.strip() and line.strip() != "…"]


def play(page: Path, person: Person, env: dict[str, str], left_out: dict[str, str], limit: float) -> list[PlayedBlock]:
    """Follow a page in one shell; `left_out` are commands that are not run here, each with the reason."""
    script, played, folder = ["set +e"], list[Block](), ""
    for block in blocks(page):
        if name := FILE.match(block.text):
            if name[1] == "workflow.yaml":
                folder = re.search(r"^name: (\S+)$", block.text, re.MULTILINE)[1]  # type: ignore[index]
            target = f"{folder}/{name[1]}"
            script += [f"mkdir -p $(dirname {target})", f"cat > {target} <<'END_OF_FILE'\n{block.text}END_OF_FILE"]
            continue
        wanted = [command for command in commands_of(block) if command not in left_out]
        if wanted:
            script.append(f"echo '{MARK} {len(played)}'")
            script += wanted
            played.append(block)
    done = subprocess.run(
        ["bash", "-c", "\n".join(script)],
        cwd=person.cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=limit,
        check=False,
    )
    parts = re.split(rf"^{MARK} \d+$\n?", done.stdout, flags=re.MULTILINE)[1:]
    assert len(parts) == len(played), done.stdout
    return [PlayedBlock(block, printed) for block, printed in zip(played, parts, strict=True)]


def differences(played: PlayedBlock) -> list[str]:
    """The lines that a block shows and its commands did not print."""
    printed = [_plain(line) for line in played.printed.splitlines()]
    return [line for line in shown_by(played.block) if not any(_fits(line, one) for one in printed)]


def _fits(shown: str, printed: str) -> bool:
    parts = [re.escape(_plain(part)) for part in shown.split("…")]
    return re.fullmatch(".*".join(parts), printed) is not None


def _plain(text: str) -> str:
    """A line without what differs from one time to the next."""
    text = re.sub(r"\b(?=[0-9a-f]*\d)[0-9a-f]{8,}\b", "ID", text)
    text = re.sub(r"\d+(?:[.:,]\d+)*", "0", text)
    text = re.sub(r"\b0 (?:ms|s|m 0|h 0)\b", "TIME", text)
    return re.sub(r"\s+", " ", text).strip()
