"""Tries from inside what a sandbox must not allow, and says what got through. Made for `doctor` and `sandbox check`."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import shutil
import socket
from dataclasses import dataclass, replace
from pathlib import Path

from bailiwick.config.paths import make_private
from bailiwick.processes import children
from bailiwick.processes.proc import EFFECT_MARK
from bailiwick.sandbox import selftest_probes as attempts
from bailiwick.sandbox.service import Sandboxes
from bailiwick.sandbox.spec import MB, SandboxLimits, SandboxSpec
from bailiwick.sandbox.system_view import find_interpreter

SECONDS = 30.0
_LIMITS = SandboxLimits(memory=512 * MB, processes=64, tmp=16 * MB)


@dataclass(frozen=True, slots=True)
class EscapeProbe:
    """One thing that was tried: its name, whether the sandbox held, and what was found, in words."""

    name: str
    protected: bool
    found: str


_WORDS = {
    "files": ("other files of this machine can't be read", "a private file of ours could be read"),
    "writes": ("nothing outside its tree can be written", "something outside its tree could be written"),
    "environment": ("our variables can't be read", "variables of another process could be read"),
    "processes": ("our processes can't be seen", "our process could be seen"),
    "network": ("no service of this machine and no other machine is reached", "other services can be reached"),
    "descriptors": ("no open file of ours is inherited", "an open file of ours was inherited"),
    "rights": ("no rights, and none to gain", "it has rights of its own, or can gain some"),
    "namespaces": ("no namespace of its own can be made", "it could make a namespace of its own"),
    "system calls": ("system calls are filtered", "system calls are not filtered"),
}
"""What is tried inside: the words where the sandbox held, and where it did not."""


async def self_test(sandboxes: Sandboxes) -> list[EscapeProbe]:
    """Try every way in which what is inside could reach out. Leaves nothing behind; takes about a tenth of a second.

    Raises `NotReady` where the sandbox can't be entered.
    """
    folder = make_private(sandboxes.scratch / f"selftest-{secrets.token_hex(6)}")
    mark = f"selftest-{secrets.token_hex(8)}"
    try:
        with socket.create_server(("127.0.0.1", 0)) as server:
            escaped, words = await _try(sandboxes, folder, mark, int(server.getsockname()[1]))
        survived = bool(children.find_children({EFFECT_MARK: mark}))
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
    if escaped is None:
        return [EscapeProbe("self-test", protected=False, found=f"it could not be carried out: {words}")]
    got = {name: escaped.get(name, True) for name in _WORDS}
    probes = [EscapeProbe(name, not through, _WORDS[name][through]) for name, through in got.items()]
    last = "a process was left behind" if survived else "no process is left behind"
    return [*probes, EscapeProbe("end", not survived, last)]


async def _try(sandboxes: Sandboxes, folder: Path, mark: str, port: int) -> tuple[dict[str, bool] | None, str]:
    """What got through, by name; None and what was said where the attempts could not be made."""
    tree, outside = make_private(folder / "tree"), make_private(folder / "outside")
    secret = folder / "secret"
    secret.write_text("a file of ours")
    stat = children.read_stat(os.getpid())
    facts = {
        "file": str(secret),
        "outside": str(outside),
        "name": f".{mark}",
        "port": port,
        "start": "" if stat is None else str(stat.start),
    }
    plain = sandboxes.sandbox_spec("gate", tree, limits=_LIMITS)
    handle = os.open(secret, os.O_RDONLY)
    os.set_inheritable(handle, True)
    try:
        program = await asyncio.to_thread(Path(attempts.__file__).read_text, "utf-8")
        argv = (str(find_interpreter().program), "-I", "-S", "-c", program, json.dumps(facts))
        env = sandboxes.env({EFFECT_MARK: mark})
        end = await sandboxes.run(_only(plain, tree), argv, env=env, timeout=SECONDS)
    finally:
        os.close(handle)
    try:
        found: dict[str, bool] = json.loads(end.stdout)
    except ValueError:
        return None, end.stderr.decode("utf-8", "replace").strip().replace("\n", "; ")[-500:]
    return found, ""


def _only(sandbox_spec: SandboxSpec, tree: Path) -> SandboxSpec:
    """The cage without the operator's tools: what they show was chosen by the operator."""
    return replace(sandbox_spec, binds=tuple(bind for bind in sandbox_spec.binds if bind.source == tree))
