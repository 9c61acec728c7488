"""Stand-ins for agent programs: small scripts that read their prompt and replay a recording."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from bailiwick.testing.backend_conformance import Behaviour

TRANSCRIPTS = Path(__file__).parents[1] / "transcripts"

SCRIPT = """#!{python} -IS
import hashlib, json, os, re, signal, sys
told = json.loads({told!r})
if sys.argv[1:] == ["--version"]:
    print(told["version"])
    sys.exit()
if told["behaviour"] == "hangs":
    os.write(1, told["hang"].encode())
    while True:
        signal.pause()
prompt = sys.stdin.buffer.read()
if told["behaviour"] == "garbage":
    os.write(1, b'\\xff\\xfe{{"type":\\n{{"type": []}}\\n[1]\\nprose\\n')
    os.write(1, b'{{"type":"result","usage":7}}\\n\\x1b[31m' + b"{{" * 9999)
    sys.exit()
digest = hashlib.sha256(prompt).hexdigest()
line = " ".join(sys.argv)
given = re.search(r"(?:--session-id|--resume|resume)[ =]([0-9a-f-]{{36}})", line)
said = told["compact"] if prompt == b"/compact" and told["compact"] else told["said"]
if given:
    said = said.replace(told["session"], given[1])
os.write(1, said.replace(told["answer"], digest).encode())
sys.stderr.write(told["stderr"])
sys.exit(told["code"])
"""


def install(folder: Path, cli: str, behaviour: Behaviour) -> Path:
    """An executable named like the program, which behaves so; the folder it is in belongs on the PATH."""
    version = {"claude": "2.1.325 (Claude Code)", "codex": "codex-cli 0.166.0", "copilot": "1.0.102"}[cli]
    failed = {"claude": "r529", "codex": "r503", "copilot": "r503"}[cli]
    said = _recorded(cli, failed if behaviour == "fails" else "plain")
    told = {
        "version": version,
        "behaviour": behaviour,
        "hang": _recorded(cli, "hang"),
        "said": said,
        "compact": _recorded(cli, "sess.7-compact") if cli == "claude" else "",
        "session": _session(said),
        "answer": "Hello from the stub.",
        "stderr": "Reading prompt from stdin...\n",
        "code": 1 if behaviour == "fails" else 0,
    }
    return write(folder / cli, SCRIPT.format(python=sys.executable, told=json.dumps(told)))


def write(path: Path, script: str) -> Path:
    """An executable script."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(script, encoding="utf-8")
    path.chmod(0o755)
    return path


def environment(tmp_path: Path) -> dict[str, str]:
    """What such a program needs: a PATH with the fake first, a home and a temporary directory of its own."""
    (tmp_path / "tmp").mkdir(exist_ok=True)
    path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return {"PATH": path, "HOME": str(tmp_path), "TMPDIR": str(tmp_path / "tmp")}


def _recorded(cli: str, case: str) -> str:
    return (TRANSCRIPTS / cli / f"{case}.jsonl").read_text("utf-8")


def _session(said: str) -> str:
    for line in said.splitlines():
        event = json.loads(line)
        for name in ("session_id", "thread_id", "sessionId"):
            if name in event:
                return str(event[name])
    raise ValueError("the recording names no session")
