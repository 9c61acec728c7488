"""Setting up a repository: a gate as a file, and the entry by which editors and agent CLIs find our MCP server."""

from __future__ import annotations

import difflib
import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bailiwick.config.editing import write_atomically
from bailiwick.config.variables import Environment
from bailiwick.errors import InputInvalid, Place, Problem
from bailiwick.gate.spec import CheckSpec, GateSpec, read_gate
from bailiwick.ids import Json
from bailiwick.skills.text_form import in_the_form_of

MCP_FILE: Final = ".mcp.json"
SERVERS: Final = "mcpServers"
NAME: Final = "bailiwick"
NOT_JSON = "BW170"
NOT_SERVERS = "BW171"
LARGEST: Final = 1_000_000
MODE: Final = 0o644
_PLAIN = re.compile(r"(?:--?)?[A-Za-z_./][A-Za-z0-9_./=+-]*")
_NOT_TEXT = ("true", "false", "yes", "no", "on", "off", "null", "y", "n", ".nan", ".inf")


@dataclass(frozen=True, slots=True)
class FileEdit:
    """A file as it is and as it would be."""

    path: Path
    before: str
    after: str

    @property
    def needed(self) -> bool:
        """Whether there is anything to write."""
        return self.before != self.after

    def diff(self, shown: str) -> Iterator[str]:
        """The change, line by line; `shown` is the name of the file."""
        old, new = self.before.splitlines(), self.after.splitlines()
        yield from difflib.unified_diff(old, new, shown if self.before else "/dev/null", shown, lineterm="")

    def write(self) -> None:
        """Write it whole or not at all."""
        fresh = not self.path.exists()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(self.path, self.after)
        if fresh:
            self.path.chmod(MODE)


def mcp_entry(path: str, python: Path, *, in_venv: bool) -> dict[str, Json]:
    """How a client starts us: by our name where a program started anywhere finds it, else by the full path.

    What is found only because an environment is active is not found by an editor that was started elsewhere. `path`
    is where programs are looked for, `python` the interpreter that runs us.
    """
    beside = python.parent / NAME
    found = shutil.which(NAME, path=path)
    if found is not None and not (in_venv and Path(found).parent == beside.parent):
        return {"command": NAME, "args": ["mcp"]}
    if os.access(beside, os.X_OK):
        return {"command": str(beside), "args": ["mcp"]}
    return {"command": str(python), "args": ["-m", "bailiwick", "mcp"]}


def own_entry() -> dict[str, Json]:
    """How a client starts this very installation."""
    import sys

    path = Environment().text("PATH") or os.defpath
    return mcp_entry(path, Path(sys.executable), in_venv=sys.prefix != sys.base_prefix)


def mcp_change(root: Path, entry: dict[str, Json]) -> FileEdit:
    """Our entry in a repository's `.mcp.json`; other servers stay. Raises `InputInvalid` for a file that is no such."""
    path = root / MCP_FILE
    text = _text(path)
    if not text.strip():
        return FileEdit(path, text, json.dumps({SERVERS: {NAME: entry}}, indent=2) + "\n")
    data = _parsed(text, path)
    servers = data.setdefault(SERVERS, {})
    if not isinstance(servers, dict):
        what = f"'{SERVERS}' is not an object"
        raise InputInvalid([Problem(NOT_SERVERS, what, Place(str(path)), 'write "mcpServers": {}')])
    if servers.get(NAME) == entry:
        return FileEdit(path, text, text)
    servers[NAME] = entry
    made = json.dumps(data, indent=_indent(text), ensure_ascii=False)
    return FileEdit(path, text, in_the_form_of(text.encode(), f"{made}\n".encode(), MCP_FILE).decode())


def _text(path: Path) -> str:
    try:
        data = path.read_bytes()
        if len(data) > LARGEST:
            raise InputInvalid([Problem(NOT_JSON, "the file is too large", Place(str(path)), "a megabyte at most")])
        return data.decode("utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise InputInvalid([Problem(NOT_JSON, f"can't be read: {error}", Place(str(path)), "make it UTF-8")]) from error


def _parsed(text: str, path: Path) -> dict[str, Json]:
    try:
        data = json.loads(text.removeprefix("\ufeff"), object_pairs_hook=_unique)
    except json.JSONDecodeError as error:
        place = Place(str(path), error.lineno, error.colno)
        hint = "repair it by hand; nothing was written"
        raise InputInvalid([Problem(NOT_JSON, f"is not valid JSON: {error.msg}", place, hint)]) from error
    except (ValueError, RecursionError) as error:
        raise InputInvalid([Problem(NOT_JSON, f"can't be used: {error}", Place(str(path)), "repair it")]) from error
    if not isinstance(data, dict):
        raise InputInvalid(
            [Problem(NOT_JSON, "is not a JSON object", Place(str(path), 1, 1), 'such as {"mcpServers": {}}')]
        )
    return data


def _unique(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    out: dict[str, Json] = {}
    for key, value in pairs:
        if key in out:
            raise ValueError(f"key '{key}' is there twice, and one would be lost")
        out[key] = value
    return out


def _indent(text: str) -> int | str | None:
    """How the file is indented; None where it is written on one line."""
    found = re.search(r"\n([ \t]+)\S", text)
    if found is None:
        return 2 if "\n" in text.strip() else None
    return found[1] if "\t" in found[1] else len(found[1])


def gate_change(root: Path, spec: GateSpec, file: str, remarks: Iterable[str] = ()) -> FileEdit:
    """A `gate.yaml` that says what was detected, to be read and changed by people."""
    path = root / file
    before = path.read_text("utf-8") if path.is_file() else ""
    if before:
        return FileEdit(path, before, before)
    after = gate_text(spec, remarks)
    read_gate(after.encode(), file, "base")
    return FileEdit(path, "", after)


def gate_text(spec: GateSpec, remarks: Iterable[str] = ()) -> str:
    """A gate as a file; `remarks` are comments at its top, such as what was tried."""
    lines = [
        "# What a change has to pass before it is proposed. Detected; change it as you like, then commit it:",
        "# the gate of the base commit counts. All of it: bailiwick schema gate",
        *(f"# {_printable(remark)}" for remark in remarks),
        "version: 1",
    ]
    if spec.prepare:
        lines += ["prepare:                 # makes the environment, once; nothing here is run again until it changes"]
        lines += [f"  - {flow(command)}" for command in spec.prepare]
    lines += ["checks:", *(line for check in spec.checks for line in _check_lines(check))]
    lines += ["protected:               # changes to these paths need a person"]
    lines += [f"  - {json.dumps(pattern)}" for pattern in spec.protected]
    return "\n".join(lines) + "\n"


def flow(words: Iterable[str]) -> str:
    """A command as a YAML list on one line, quoted only where it has to be."""
    return f"[{', '.join(word if _is_plain(word) else json.dumps(word, ensure_ascii=False) for word in words)}]"


def _is_plain(word: str) -> bool:
    return _PLAIN.fullmatch(word) is not None and word.lower() not in _NOT_TEXT


def _printable(text: str) -> str:
    return "".join(sign if sign.isprintable() else " " for sign in text)


def _check_lines(check: CheckSpec) -> Iterator[str]:
    yield f"  - name: {check.name}"
    if check.kind != "command":
        yield f"    kind: {check.kind}"
    if check.run:
        yield f"    run: {flow(check.run)}"
