"""YAML to plain values that know where they were written.

The rules are those of YAML 1.2's core schema, cut down to what JSON can carry; keys are always text as written.
A workflow without `version:` was written for workhorse: its scalars are those of YAML 1.1.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, NoReturn

from bailiwick.errors import InputInvalid, Place, Problem
from bailiwick.lang import codes
from bailiwick.lang.builder import CONTROL, build
from bailiwick.lang.values import Value, describe

if TYPE_CHECKING:
    from pathlib import Path

MAX_BYTES = 1 << 20


def read_yaml(path: Path, shown: str | None = None) -> Value:
    """Read a file, named `shown` in problems; raises `InputInvalid` with every problem found."""
    file = shown or str(path)
    return parse_yaml(read_bytes(path, Place(file), MAX_BYTES), file)


def read_workflow(path: Path, shown: str, warnings: list[Problem]) -> Value:
    """Read a workflow file; one without `version:` as workhorse read it, with a warning where that differs."""
    return parse_yaml(read_bytes(path, Place(shown), MAX_BYTES), shown, warnings)


def read_bytes(path: Path, place: Place, limit: int) -> bytes:
    """The bytes of a regular file of at most `limit` bytes; a pipe or a device is refused without waiting for it."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        _refuse(codes.UNREADABLE, "the file does not exist", place, "check the path")
    except OSError as error:
        _refuse(codes.UNREADABLE, f"the file can't be opened: {error.strerror}", place, "check its permissions")
    except ValueError:
        _refuse(codes.UNREADABLE, "the path holds a NUL character", place, "check the path")
    try:
        mode = os.fstat(handle).st_mode
        if not stat.S_ISREG(mode):
            kind = "a directory" if stat.S_ISDIR(mode) else "not a regular file"
            _refuse(codes.SPECIAL_FILE, f"this is {kind}", place, "give a regular file")
        with os.fdopen(handle, "rb", closefd=False) as stream:
            data = stream.read(limit + 1)
    except OSError as error:
        _refuse(codes.UNREADABLE, f"the file can't be read: {error.strerror}", place, "check the disk")
    finally:
        os.close(handle)
    if len(data) > limit:
        _refuse(
            codes.UNREADABLE,
            f"the file is larger than {limit:,} bytes",
            place,
            "split it, or move data to its own file",
        )
    return data


def parse_yaml(data: bytes, file: str, warnings: list[Problem] | None = None) -> Value:
    """Parse one document whose root is a mapping; raises `InputInvalid` with every problem found.

    With `warnings`, a document without `version:` is read as YAML 1.1; where that differs is added to them.
    """
    if len(data) > MAX_BYTES:
        _refuse(codes.UNREADABLE, f"the file is larger than {MAX_BYTES:,} bytes", Place(file), "split it")
    text = decode(data, file)
    root = build(text.encode(), file, warnings)
    if root is None:
        _refuse(codes.DOCUMENT, "the file is empty", Place(file, 1, 1), "a mapping such as `start: first` is expected")
    if not isinstance(root.data, dict):
        what = f"a mapping is expected here, found {describe(root.data)}"
        _refuse(codes.DOCUMENT, what, root.place, "write `key: value` lines")
    return root


def decode(data: bytes, file: str) -> str:
    """The text of UTF-8 bytes without a byte order mark; other bytes and control characters are `InputInvalid`."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        place = _place_in(data[: error.start].decode("utf-8", "replace"), file)
        what = f"byte {data[error.start]:#04x} at offset {error.start} is not UTF-8"
        _refuse(codes.CHARACTERS, what, place, "save the file as UTF-8")
    text = text.removeprefix("\ufeff")
    bad = CONTROL.search(text)
    if bad:
        what = f"the control character U+{ord(bad[0]):04X} is not allowed"
        _refuse(codes.CHARACTERS, what, _place_in(text[: bad.start()], file), "remove it")
    return text


def _refuse(code: str, what: str, place: Place, hint: str) -> NoReturn:
    raise InputInvalid([Problem(code, what, place, hint)])


def _place_in(before: str, file: str) -> Place:
    line = before.count("\n")
    return Place(file, line + 1, len(before) - (before.rfind("\n") + 1) + 1)
