"""Script nodes, and the scripts that a `wait` polls: one run of the operator's own code, its answer read strictly."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import signal
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path, PurePosixPath

from bailiwick.config.secrets import Secrets
from bailiwick.config.shapes import REFERENCE
from bailiwick.config.variables import Environment
from bailiwick.engine.events import Failure
from bailiwick.engine.graph import Node, Output, Wait, Work
from bailiwick.engine.render import Lookup, Rendered, Renderer
from bailiwick.errors import BailiwickError
from bailiwick.ids import Json
from bailiwick.lang.reading import is_plain
from bailiwick.processes.command import Command, Exit
from bailiwick.processes.proc import plain_line
from bailiwick.runtime.kinds import AttemptRequest, Done, Failed, Io
from bailiwick.runtime.pins import pin_gone
from bailiwick.strict_json import finite_number, is_deep, refuse_constant, unique_keys

INTERPRETERS = {".py": "python3", ".sh": "bash", ".bash": "bash"}
LOG_KEPT = 64 * 1024
ANSWER_KEPT = 16 * 1024 * 1024
"""The longest standard output that is read as an answer."""
DEEPEST = 200
NOT_YET = 1
"""The exit code by which a polled script says: look again later."""

Fill = Callable[[str], str]
"""Puts secrets in the place of the references to them in a text; raises `BailiwickError` where one is not there."""

_OWN = "BAILIWICK_"


class BadAnswer(ValueError):
    """What a script printed is not what its node declares; the text says why."""


class ScriptKind:
    """Runs a script once. `fill` resolves the secrets in a node's `env`; without it they are variables or files."""

    def __init__(self, fill: Fill | None = None) -> None:
        self._fill = fill

    def prepare(self, node: Node, lookup: Lookup, renderer: Renderer) -> Rendered:
        if not isinstance(node, Work):
            raise TypeError(f"'{node.id}' is not a script node")
        spec = node.spec
        return _prepare(
            {"script": spec["script"], "args": spec.get("args"), "env": spec.get("env"), "cwd": spec.get("cwd")},
            lookup,
            renderer,
        )

    async def attempt(self, request: AttemptRequest, io: Io) -> Done | Failed:
        node = request.node
        if not isinstance(node, Work):
            raise TypeError(f"'{node.id}' is not a script node")
        return await _attempt(request, io, outputs=node.outputs, seconds=node.timeout, fill=self._fill)


class PollKind:
    """Looks once whether what a `wait` node waits for is there: exit 0 is ready, exit 1 not yet."""

    def prepare(self, node: Node, lookup: Lookup, renderer: Renderer) -> Rendered:
        if not isinstance(node, Wait) or node.poll is None:
            raise TypeError(f"'{node.id}' polls no script")
        return _prepare({"script": node.poll.script, "args": list(node.poll.args)}, lookup, renderer)

    async def attempt(self, request: AttemptRequest, io: Io) -> Done | Failed:
        node = request.node
        if not isinstance(node, Wait) or node.poll is None:
            raise TypeError(f"'{node.id}' polls no script")
        result = await _attempt(request, io, node.outputs, node.poll.timeout)
        if isinstance(result, Failed) and result.failure.kind == "exit" and result.log.get("code") == NOT_YET:
            return Failed(Failure("not_yet", "the script says: not yet", result.failure.detail), result.log)
        return result


def _prepare(spec: dict[str, Json], lookup: Lookup, renderer: Renderer) -> Rendered:
    """The script's arguments, variables and directory as plain text, each rendered once."""
    missing: dict[str, None] = {}

    def text(template: Json) -> str:
        if not isinstance(template, str):
            return json.dumps(template)
        made = renderer.text(template, lookup)
        missing.update(dict.fromkeys(made.missing))
        return str(made.value)

    args = spec.get("args") or []
    value = {
        "script": spec["script"],
        "args": [text(arg) for arg in (args.values() if isinstance(args, dict) else args)],
        "env": {name: text(value) for name, value in (spec.get("env") or {}).items()},
        "cwd": None if spec.get("cwd") is None else text(spec["cwd"]),
    }
    return Rendered(value, tuple(missing))


async def _attempt(
    request: AttemptRequest, io: Io, outputs: Sequence[Output], seconds: float | None, fill: Fill | None = None
) -> Done | Failed:
    keep = ANSWER_KEPT if outputs else LOG_KEPT
    try:
        command = _command(request, io.environment(), seconds=seconds, keep=keep, fill=fill)
    except FileNotFoundError as error:
        return Failed(Failure("not_found", str(error)))
    except BailiwickError as error:
        return Failed(Failure("not_found", f"{error.what}; {error.hint}", {"code": error.code}))
    try:
        end = await io.run(command)
    except OSError as error:
        return Failed(_spawn_failure(command, request.prepared["script"], error), {"command": list(command.argv)})
    return _verdict(end, command, outputs)


def _command(
    request: AttemptRequest, environment: dict[str, str], seconds: float | None, keep: int, fill: Fill | None
) -> Command:
    """What to start; raises `FileNotFoundError` with a sentence where the script, its interpreter or the cwd is not."""
    prepared = request.prepared
    script = PurePosixPath(prepared["script"])
    path = request.pinned / script
    if script.is_absolute() or ".." in script.parts or not path.is_file():
        raise FileNotFoundError(pin_gone(request.pinned, str(script), request.run))
    own = {name: value for name, value in environment.items() if name.startswith(_OWN)}
    chosen = _variables(request, fill or Secrets(environment=Environment(environment)).filled)
    env = {**environment, **chosen, **own}  # a node can't take off the marks by which its processes are found
    argv = [str(path), *prepared["args"]]
    if interpreter := INTERPRETERS.get(path.suffix):
        found = _found(interpreter, env.get("PATH", ""))
        if found is None:
            raise FileNotFoundError(
                f"'{interpreter}', which runs '{script}', is not on the PATH of the node's environment"
            )
        argv.insert(0, found)
    return Command(tuple(argv), env=env, cwd=_directory(request), timeout=seconds, keep=keep)


def _variables(request: AttemptRequest, fill: Fill) -> dict[str, str]:
    """The node's variables. Only a reference that its file writes is filled in: one in a rendered value is text."""
    written = (request.node.spec.get("env") or {}) if isinstance(request.node, Work) else {}
    chosen: dict[str, str] = dict(request.prepared["env"])
    for name, template in written.items():
        if not isinstance(template, str) or not re.search(REFERENCE, template):
            continue
        if not is_plain(template):
            raise FileNotFoundError(f"the variable '{name}' mixes a secret with a template; give each its own variable")
        chosen[name] = fill(template)
    return chosen


@cache
def _place(interpreter: str, search: str) -> str | None:
    return shutil.which(interpreter, path=search)


def _found(interpreter: str, search: str) -> str | None:
    """Where an interpreter is: looked for once, and again when it is no longer there."""
    found = _place(interpreter, search)
    if found is None or not os.access(found, os.X_OK):
        _place.cache_clear()
        found = _place(interpreter, search)
    return found


def _directory(request: AttemptRequest) -> Path:
    """Where the script runs: the node's cwd, relative to the live workflow directory, or that directory itself."""
    written = request.prepared["cwd"]
    if written is None:
        path = request.live
    elif not written.strip():
        raise FileNotFoundError(f"the cwd of node '{request.node.id}' rendered to nothing; check its template")
    else:
        path = request.live / written
    if not path.is_dir():
        raise FileNotFoundError(f"the working directory '{path}' does not exist")
    return path


def _spawn_failure(command: Command, script: str, error: OSError) -> Failure:
    reason = error.strerror or str(error)
    if error.filename == str(command.cwd):
        return Failure("spawn", f"'{script}' could not be started in '{command.cwd}': {reason}")
    match error.errno:
        case errno.ENOENT:
            return Failure("not_found", f"'{script}' names an interpreter in its first line that does not exist here")
        case errno.EACCES:
            reason = "it is not executable; run `chmod +x` on it, or end its name in .py or .sh"
        case errno.ENOEXEC:
            reason = "it has no `#!` line; add one, or end its name in .py or .sh"
        case errno.E2BIG:
            reason = "its arguments and variables are too long for the system; pass a file instead"
        case _:
            pass
    return Failure("spawn", f"'{script}' could not be started: {reason}")


def _verdict(end: Exit, command: Command, outputs: Sequence[Output]) -> Done | Failed:
    log: dict[str, Json] = {
        "command": list(command.argv),
        "stdout": end.stdout[:LOG_KEPT].decode("utf-8", "replace"),
        "stderr": end.stderr.decode("utf-8", "replace"),
        "code": end.code,
    }
    if end.cancelled:
        return Failed(Failure("cancelled", "it was ended before it was done"), log)
    if end.timed_out:
        return Failed(Failure("timeout", f"it ran longer than {command.timeout:g} s and was ended"), log)
    if end.code != 0:
        return Failed(Failure("exit", _exit_message(end), {"code": end.code}), log)
    if not outputs:
        return Done({}, log)
    try:
        if end.truncated:
            raise BadAnswer(f"standard output is longer than {command.keep // 1024:,} KiB")
        return Done(read_outputs(end.stdout, outputs), log)
    except BadAnswer as error:
        return Failed(Failure("bad_output", str(error)), log)


def _exit_message(end: Exit) -> str:
    how = f"exited with {end.code}" if end.code > 0 else f"ended by {signal_name(-end.code)}"
    lines = (plain_line(line, 300) for line in reversed(end.stderr.splitlines()))
    last = next((line for line in lines if line), "")
    return f"{how}: {last}" if last else how


def signal_name(number: int) -> str:
    """`SIGTERM` for 15; a number without a name stays one."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def read_outputs(raw: bytes, outputs: Sequence[Output]) -> dict[str, Json]:
    """The declared keys of the one JSON object in `raw`, each checked against its schema; raises `BadAnswer`."""
    data = _read_object(raw, ", ".join(f"'{output.key}'" for output in outputs))
    there = ", ".join(f"'{plain_line(key.encode('utf-8', 'replace'), 60)}'" for key in list(data)[:20]) or "none"
    for output in outputs:
        if output.key not in data:
            raise BadAnswer(f"output '{output.key}' is missing on standard output; keys there are: {there}")
        if output.schema is not None:
            _check(output, data[output.key])
    return {output.key: data[output.key] for output in outputs}


def _read_object(raw: bytes, keys: str) -> dict[str, Json]:
    hint = f"it has to be one JSON object with {keys}, and nothing else (messages belong on standard error)"
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadAnswer(f"standard output is not UTF-8 at byte {error.start}; {hint}") from None
    if not text.strip():
        raise BadAnswer(f"standard output is empty; {hint}")
    try:
        data = _strict(text)
    except json.JSONDecodeError as error:
        what = f"{error.msg} at {error.lineno}:{error.colno}"
        raise BadAnswer(f"standard output is not JSON ({what}); {hint}") from None
    except (ValueError, RecursionError) as error:
        raise BadAnswer(f"standard output can't be used ({_cut(str(error))}); {hint}") from None
    if not isinstance(data, dict):
        raise BadAnswer(f"standard output is a JSON {_TYPES.get(type(data), 'value')}; {hint}")
    return data


_TYPES = {list: "list", str: "string", int: "number", float: "number", bool: "boolean", type(None): "null"}


def _strict(text: str) -> Json:
    """JSON as the standard has it: no key twice, only finite numbers, no half characters, not too deep."""
    data = json.loads(text, object_pairs_hook=unique_keys, parse_constant=refuse_constant, parse_float=finite_number)
    if text.count("[") + text.count("{") > DEEPEST and is_deep(data, DEEPEST):
        raise ValueError(f"nested deeper than {DEEPEST} levels")
    if "\\ud" in text or "\\uD" in text:
        json.dumps(data, ensure_ascii=False).encode("utf-8")
    return data


def _check(output: Output, value: Json) -> None:
    from bailiwick.lang.schemas import validator_of

    try:
        first = next(iter(validator_of(output.schema).iter_errors(value)), None)
    except ValueError as error:
        raise BadAnswer(f"the schema of output '{output.key}' can't be used: {_cut(str(error))}") from None
    if first is not None:
        where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first.instance_path)
        raise BadAnswer(f"output '{output.key}{where}' does not fit its schema: {_cut(first.message)}")


def _cut(text: str) -> str:
    return plain_line(" ".join(text[:2000].split()).encode("utf-8", "replace"), 300)
