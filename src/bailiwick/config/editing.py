"""Changes the person's file: one value in its text, the rest as it was, comments included; valid or not at all."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bailiwick.config.files import parse_layer
from bailiwick.config.keys import find_key
from bailiwick.config.layers import Layer, LayerKind
from bailiwick.config.service import unknown_key
from bailiwick.config.shapes import FilePath, as_value, from_text
from bailiwick.durable import sync_folder
from bailiwick.errors import InputInvalid, NotReady, Place, UsageError
from bailiwick.ids import Json
from bailiwick.lang.fields import Findings

if TYPE_CHECKING:
    from yaml import MappingNode, Node

NOT_WRITABLE = "BW215"
TOO_INTRICATE = "BW216"
_PLAIN = r"[A-Za-z][A-Za-z0-9_./-]*|(?:[0-9]+(?:ms|d|h|m|s))+"
_WORDS_WITH_A_MEANING = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}


def set_value(file: Path, name: str, text: str, cwd: Path) -> None:
    """Set one key in a file, which is made if it isn't there. Writes nothing unless the result is valid."""
    data = _checked(name, text, cwd)
    with _alone(file.parent):
        before = read_text_file(file)
        old = check_bytes(before, file)
        after = place_value(before.decode("utf-8"), name.split("."), data)
        if not _only_changed(old, after, file, (name, data)):
            raise UsageError(
                f"{name} can't be set without touching something else in the file",
                place=Place(str(file)),
                hint="change it by hand with `bailiwick config edit`",
                code=TOO_INTRICATE,
            )
        write_atomically(file, after)


def read_text_file(file: Path) -> bytes:
    """The bytes of the person's file, none where there is no file; raises `InputInvalid` where it can't be read."""
    from bailiwick.lang.source import MAX_BYTES, read_bytes

    return read_bytes(file, Place(str(file)), MAX_BYTES) if os.path.lexists(file) else b""


def check_bytes(data: bytes, file: Path) -> Layer:
    """The layer that some bytes would be if they were the person's file; raises `InputInvalid`."""
    found = Findings(strict=True)
    layer = parse_layer(LayerKind.PERSON, data, file, found)
    if found.failed or layer is None:
        raise InputInvalid(found.problems)
    return layer


def _checked(name: str, text: str, cwd: Path) -> Json:
    key = find_key(name)
    if key is None:
        raise unknown_key(name)
    found = Findings(strict=True)
    data = from_text(text, key.shape)
    key.shape.read(as_value(data, name), found)
    if found.failed:
        raise InputInvalid(found.problems)
    return str(cwd / Path(data).expanduser()) if isinstance(key.shape, FilePath) else data


def _only_changed(old: Layer, after: str, file: Path, wanted: tuple[str, Json]) -> bool:
    """Whether a text sets what is wanted, and everything else as before."""
    name, data = wanted
    try:
        new = check_bytes(after.encode("utf-8"), file)
        alone = check_bytes(_block(name.split("."), data, 0).encode("utf-8"), file)
    except InputInvalid:
        return False
    expected = {key: setting.value for key, setting in (old.settings | alone.settings).items()}
    return {key: setting.value for key, setting in new.settings.items()} == expected


def place_value(text: str, path: list[str], data: Json) -> str:
    """The text with a value at a path, changed as little as possible."""
    import yaml

    root = yaml.compose(text, Loader=yaml.SafeLoader)
    if root is None:
        head = text if not text or text.endswith("\n") else text + "\n"
        return head + _block(path, data, 0)
    here, depth = root, 0
    while isinstance(here, yaml.MappingNode) and depth < len(path):
        entry = next(((key, value) for key, value in here.value if key.value == path[depth]), None)
        if entry is None:
            return _insert(text, here, path[depth:], data)
        key, here = entry
        depth += 1
    colon = text.index(":", key.end_mark.index) + 1
    end = max(colon, _end(here))
    start = here.start_mark.index if _on_one_line(here) and here.start_mark.index > colon else colon
    gap = " " if start == colon else ""
    return text[:start] + gap + _flow(path[depth:], data) + text[end:]


def _insert(text: str, mapping: MappingNode, rest: list[str], data: Json) -> str:
    """Add a key to a mapping that does not have it: as its last line, or inside its braces."""
    if mapping.flow_style:
        at = _end(mapping) if mapping.value else mapping.start_mark.index + 1
        comma = ", " if mapping.value else ""
        return text[:at] + comma + _flow(rest, data)[1:-1] + text[at:]
    line_end = text.find("\n", _end(mapping))
    at = len(text) if line_end < 0 else line_end
    column = mapping.value[0][0].start_mark.column
    return text[:at] + "\n" + _block(rest, data, column).rstrip("\n") + text[at:]


def _end(node: Node) -> int:
    """Where the last thing written in a node ends; a block's own end mark lies behind the comments that follow it."""
    import yaml

    if isinstance(node, yaml.MappingNode) and node.value:
        return _end(node.value[-1][1])
    if isinstance(node, yaml.SequenceNode) and node.value and not node.flow_style:
        return _end(node.value[-1])
    end = int(node.end_mark.index)
    if isinstance(node, yaml.ScalarNode) and node.style in ("|", ">"):
        written = node.start_mark.buffer
        if written is not None:
            end = len(written[:end].rstrip())
    return end


def _on_one_line(node: Node) -> bool:
    return bool(node.start_mark.line == node.end_mark.line)


def _flow(path: list[str], data: Json) -> str:
    """`{a: {b: value}}` for a path of two, the value alone for none."""
    inner = _scalar(data)
    for name in reversed(path):
        inner = f"{{{_scalar(name)}: {inner}}}"
    return inner


def _block(path: list[str], data: Json, column: int) -> str:
    lines = [f"{' ' * (column + 2 * depth)}{_scalar(name)}:" for depth, name in enumerate(path)]
    return "\n".join(lines) + f" {_scalar(data)}\n"


def _scalar(data: Json) -> str:
    """A value in YAML: plain where nobody can misread it, else as JSON, which YAML contains."""
    if isinstance(data, list):
        return "[" + ", ".join(_scalar(item) for item in data) + "]"
    if isinstance(data, str) and re.fullmatch(_PLAIN, data) and data.lower() not in _WORDS_WITH_A_MEANING:
        return data
    return json.dumps(data, ensure_ascii=False)


def write_atomically(file: Path, text: str) -> None:
    """Replace a file as a whole: a crash leaves the old or the new one. A link stays; what it points to is replaced."""
    target = file.resolve()
    draft = target.with_name(f".{target.name}.{os.getpid()}.new")
    try:
        mode = target.stat().st_mode & 0o777 if target.exists() else 0o600
        with draft.open("w", encoding="utf-8", newline="") as stream:
            stream.write(text)
            stream.flush()
            os.fchmod(stream.fileno(), mode)
            os.fsync(stream.fileno())
        draft.replace(target)
        sync_folder(target.parent)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise _not_writable(file, error) from error


def make_directory(directory: Path) -> None:
    """Make the directory of a configuration file; raises `NotReady` where that can't be done."""
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise _not_writable(directory, error) from error


@contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """One writer at a time in a directory, which is made if it isn't there."""
    import fcntl

    make_directory(directory)
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _not_writable(path: Path, error: OSError) -> NotReady:
    hint = "make it writable for this user, or set BAILIWICK_HOME to another directory"
    return NotReady(f"it can't be written: {error.strerror}", place=Place(str(path)), hint=hint, code=NOT_WRITABLE)
