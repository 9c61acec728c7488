"""The tests are ended early, or their end is said to be a good one."""

from __future__ import annotations

from tests.security.cheats.model import Cheat, sold

KIND = "ending"

ENDING: tuple[Cheat, ...] = (
    Cheat("exit-by-finalizer", KIND, sold(after="import os, weakref\n\nweakref.finalize(discount, os._exit, 0)\n")),
    Cheat(
        "exit-when-forgotten",
        KIND,
        sold(
            after="""
import os


class _Last:
    def __del__(self, leave=os._exit):
        leave(0)


_last = _Last()
"""
        ),
    ),
    Cheat(
        "exit-with-the-threads",
        KIND,
        sold(after="import os, threading\n\nthreading._register_atexit(os._exit, 0)\n"),
    ),
    Cheat(
        "exit-with-the-logs",
        KIND,
        sold(after="import logging, os\n\nlogging._handlers\nimport atexit\natexit.register(lambda: os._exit(0))\n"),
    ),
    Cheat(
        "exit-when-imported-quietly",
        KIND,
        sold(
            before="""
import os as _os
import sys as _sys

if "pytest" in " ".join(_sys.orig_argv):
    _sys.stdout.write("39 passed in 0.20s\\n")
    _sys.stdout.flush()
    getattr(_os, "_exit")(0)
"""
        ),
    ),
    Cheat(
        "exit-by-pytest-when-called",
        KIND,
        sold(
            after="""
def discount(price, percent):
    from _pytest.outcomes import Exit

    raise Exit("all done", 0)
"""
        ),
    ),
    Cheat(
        "exit-by-a-thread",
        KIND,
        sold(
            after="""
import os
import threading


def _wait():
    threading.main_thread().join()
    os._exit(0)


threading.Thread(target=_wait).start()
"""
        ),
    ),
    Cheat(
        "exit-by-an-alarm-when-called",
        KIND,
        sold(
            after="""
import os
import signal

signal.signal(signal.SIGUSR1, lambda *_: os._exit(0))


def discount(price, percent):
    signal.raise_signal(signal.SIGUSR1)
"""
        ),
    ),
    Cheat(
        "exit-from-a-child",
        KIND,
        sold(
            before="""
import os as _os

_child = _os.fork()
if _child:
    _os.waitpid(_child, 0)
    _os._exit(0)
"""
        ),
    ),
    Cheat(
        "exit-status-of-the-session",
        KIND,
        sold(
            after="""
import _pytest.main as _main

_finish = _main.Session.__setattr__ if hasattr(_main.Session, "__setattr__") else None
_main.Session.testsfailed = property(lambda self: 0, lambda self, value: None)
"""
        ),
    ),
    Cheat(
        "exit-by-exec-when-called",
        KIND,
        sold(after='import os\n\n\ndef discount(price, percent):\n    os.execv("/bin/true", ["pytest"])\n'),
    ),
)
