"""The first process of a container: closes itself to the others, adds our filter of system calls, goes on as the shim.

It runs as `python -I -S guard.py LETTER` beside `shim.py` and, where there is one, `filter`. The engine's own filter
stays in force. As process 1 it watches over the program, so nobody inside may read or change its memory.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import sys

FILTER = "filter"
_SET_DUMPABLE, _SET_SECCOMP, _NO_NEW_PRIVILEGES = 4, 22, 38
_BY_FILTER = 2
_LINE = 8
"""Bytes of one instruction of a filter."""


class _Program(ctypes.Structure):
    """A filter as the kernel takes it."""

    _fields_ = (("length", ctypes.c_ushort), ("lines", ctypes.c_char_p))


def main(arguments: list[str]) -> int:
    """Close up, then do the shim's work; 126 where that can't be."""
    here = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - pathlib is slow to import
    try:
        _set(_SET_DUMPABLE, 0)
        _set(_NO_NEW_PRIVILEGES, 1)
        _add_filter(os.path.join(here, FILTER))  # noqa: PTH118 - the same
    except OSError as error:
        sys.stderr.write(f"bailiwick-shim: the sandbox could not be made ready: {error}\n")
        return 126
    sys.path.insert(0, here)
    code: int = importlib.import_module("shim").main(arguments)
    return code


def _add_filter(path: str) -> None:
    if not os.path.exists(path):  # noqa: PTH110 - the same
        return
    with open(path, "rb") as file:  # noqa: PTH123 - the same
        lines = file.read()
    _set(_SET_SECCOMP, _BY_FILTER, ctypes.byref(_Program(len(lines) // _LINE, lines)))


def _set(what: int, value: int, more: object = 0) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    rest = ctypes.c_ulong(0)
    if libc.prctl(what, ctypes.c_ulong(value), more or rest, rest, rest):
        number = ctypes.get_errno()
        raise OSError(number, f"prctl {what}: {os.strerror(number)}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
