"""Which of the tools that a request offers stands for the one a script names, and how it is called."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from bailiwick.ids import Json
from bailiwick.testing.model_server.script import UseTool

_SHELL = re.compile(
    r"bash|shell|exec_command|local_shell|run_shell_command|shell_command|run_in_terminal|execute|container\.exec",
    re.IGNORECASE,
)
_WRITE = re.compile(r"write|write_file|create|create_file|str_replace_editor|edit_file", re.IGNORECASE)
_STRUCTURED = re.compile(r".*structured.*", re.IGNORECASE)
_WHERE = re.compile(r"(?:cwd|[Ww]orking directory)[^/\n]{0,20}(/[^\s\"\\<`']+)")


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call as the model makes it; `arguments` is JSON text, or what should have been."""

    name: str
    arguments: str
    custom: bool = False


def choose(step: UseTool, offered: Mapping[str, Json], request: Json) -> ToolCall | None:
    """The call of a step by a tool that is offered (name to parameter schema); None where none fits."""
    match step.tool:
        case "unknown":
            return ToolCall("NoSuchTool", '{"x": 1}')
        case "structured":
            name = _find(_STRUCTURED, offered)
            return ToolCall(name, step.raw) if name else None
        case "write":
            return _write(step, offered, request)
        case _:
            return _shell(step.command, step.raw, offered)


def _find(pattern: re.Pattern[str], offered: Mapping[str, Json]) -> str:
    return next((name for name in offered if pattern.fullmatch(name)), "")


def _shell(command: str, raw: str, offered: Mapping[str, Json]) -> ToolCall | None:
    name = _find(_SHELL, offered)
    if not name:
        return None
    known = _properties(offered[name])
    arguments: dict[str, Json] = {}
    if "cmd" in known:
        arguments["cmd"] = command
    elif isinstance(known.get("command"), dict) and known["command"].get("type") == "array":
        arguments["command"] = ["bash", "-lc", command]
    else:
        arguments["command"] = command
    extra = {"description": "a scripted command", "initial_wait": 30, "yield_time_ms": 5000}
    arguments |= {key: value for key, value in extra.items() if key in known}
    return ToolCall(name, raw or json.dumps(arguments))


def _write(step: UseTool, offered: Mapping[str, Json], request: Json) -> ToolCall | None:
    """A file tool, else a patch, else a shell command that writes the file."""
    name = _find(_WRITE, offered)
    if name:
        known = _properties(offered[name])
        place = _WHERE.search(json.dumps(request))
        path = f"{place[1].rstrip('.,') if place else '.'}/{step.path}"
        keys = [("file_path", path), ("filePath", path), ("path", path), ("absolute_path", path)]
        arguments = dict([pair for pair in keys if pair[0] in known][:1])
        texts = [("content", step.content), ("file_text", step.content)]
        arguments |= dict([pair for pair in texts if pair[0] in known][:1])
        if "command" in known:
            arguments["command"] = "create"
        return ToolCall(name, json.dumps(arguments))
    if "apply_patch" in offered:
        lines = "".join(f"+{line}\n" for line in step.content.splitlines())
        patch = f"*** Begin Patch\n*** Add File: {step.path}\n{lines}*** End Patch"
        custom = offered["apply_patch"] == "custom"
        return ToolCall("apply_patch", patch if custom else json.dumps({"input": patch}), custom)
    text = step.content.replace("'", "'\\''")
    return _shell(f"printf %s '{text}' > {step.path}", "", offered)


def _properties(schema: Json) -> dict[str, Json]:
    found = schema.get("properties") if isinstance(schema, dict) else None
    return found if isinstance(found, dict) else {}
