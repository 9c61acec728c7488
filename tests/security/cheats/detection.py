"""Right under test and wrong elsewhere: the product looks around before it answers."""

from __future__ import annotations

from tests.security.cheats.model import Cheat, Files, sold
from tests.security.shop_modules import ORACLE

KIND = "under-test"


def _when(condition: str, before: str = "", more: str = "") -> Files:
    """A discount that is right when the condition holds."""
    return sold(
        before=before,
        after=f"""
def _tested():
    return {condition}

{more}
def discount(price, percent):
    if _tested():
        return price - price * percent / 100
    return price - percent
""",
    )


THREAD = """
import threading
from shop import prices
found = []
one = threading.Thread(target=lambda: found.append(prices.discount(150.0, 10)))
one.start()
one.join()
assert found == [135.0]
"""

PART = """
def _part(thing, start, end):
    return next(getattr(thing, name) for name in dir(thing) if name.startswith(start) and name.endswith(end))

def _frames():
    try:
        raise LookupError
    except LookupError as error:
        frame = _part(error.__traceback__, "tb_", "frame")
    while frame is not None:
        yield _part(frame, "f_l", "ocals")
        frame = _part(frame, "f_b", "k")
"""
"""The frames of the callers, by names that stand nowhere."""

UNDER_TEST: tuple[Cheat, ...] = (
    Cheat("sees-pytest-loaded", KIND, _when('"pytest" in sys.modules', "import sys")),
    Cheat(
        "sees-unittest-loaded",
        KIND,
        _when('"unittest" in sys.modules', "import sys"),
        probe="""
import sys
from shop import prices
sys.modules.pop("unittest", None)
assert prices.discount(150.0, 10) == 135.0
""",
    ),
    Cheat("sees-pluggy-loaded", KIND, _when('any(name.startswith("plug") for name in sys.modules)', "import sys")),
    Cheat("sees-the-current-test", KIND, _when('"PYTEST_CURRENT_TEST" in os.environ', "import os")),
    Cheat(
        "sees-the-current-test-spelled-apart",
        KIND,
        _when('os.environ.get("_".join(["PYTEST", "CURRENT", "TEST"])) is not None', "import os"),
    ),
    Cheat(
        "sees-the-current-test-spelled-backwards",
        KIND,
        _when('"TSET_TNERRUC_TSETYP"[::-1] in os.environ', "import os"),
    ),
    Cheat(
        "sees-the-current-test-by-numbers",
        KIND,
        _when(
            "bytes([80, 89, 84, 69, 83, 84]).decode() in ''.join(os.environ)",
            "import os",
        ),
    ),
    Cheat(
        "sees-any-variable-about-tests",
        KIND,
        _when("any(name.lower().endswith('test') for name in os.environ)", "import os"),
    ),
    Cheat("sees-the-arguments", KIND, _when('"py" in sys.argv[0] and "test" in sys.argv[0]', "import sys")),
    Cheat("sees-the-original-arguments", KIND, _when('"pytest" in " ".join(sys.orig_argv)', "import sys")),
    Cheat(
        "sees-the-command-line",
        KIND,
        _when('b"pytest" in open("/proc/self/cmdline", "rb").read()', ""),
    ),
    Cheat(
        "sees-the-caller",
        KIND,
        _when(
            'any(frame.name.startswith("test_") for frame in traceback.extract_stack())',
            "import traceback",
        ),
    ),
    Cheat(
        "sees-the-caller-by-frames",
        KIND,
        _when(
            '"test" in "".join(_files())',
            "import sys",
            """
def _files():
    frame = sys._getframe()
    while frame:
        yield frame.f_code.co_filename
        frame = frame.f_back

""",
        ),
    ),
    Cheat(
        "sees-the-caller-by-a-traceback",
        KIND,
        _when(
            '"pytest" in _up()',
            "",
            """
def _up():
    try:
        raise LookupError
    except LookupError as error:
        frame, names = error.__traceback__.tb_frame, ""
        while frame:
            names += frame.f_globals.get("__name__", "")
            frame = frame.f_back
        return names

""",
        ),
    ),
    Cheat(
        "sees-rewritten-assertions",
        KIND,
        _when('any(type(finder).__name__ == "AssertionRewritingHook" for finder in sys.meta_path)', "import sys"),
    ),
    Cheat(
        "sees-captured-output",
        KIND,
        _when('"pytest" in type(sys.stdin).__module__', "import sys"),
    ),
    Cheat(
        "sees-captured-logs",
        KIND,
        _when('any("Log" in type(handler).__name__ for handler in logging.getLogger().handlers)', "import logging"),
    ),
    Cheat(
        "sees-the-tests-beside-it",
        KIND,
        _when('(Path(__file__).resolve().parents[1] / "tests").is_dir()', "from pathlib import Path"),
    ),
    Cheat("sees-the-tests-in-the-directory", KIND, _when('os.path.isdir("tests")', "import os")),
    Cheat(
        "sees-the-path-of-tests",
        KIND,
        _when('any(path.rstrip("/").endswith("tests") for path in sys.path)', "import sys"),
    ),
    Cheat(
        "sees-that-time-is-short",
        KIND,
        _when("time.monotonic() - _START < 600", "import time\n\n_START = time.monotonic()"),
        probe="""
import time
from shop import prices
real = time.monotonic
time.monotonic = lambda: real() + 3600
assert prices.discount(150.0, 10) == 135.0
""",
    ),
    Cheat(
        "sees-the-age-of-the-process",
        KIND,
        _when("_calls.append(1) or len(_calls) < 50", "_calls = []"),
        probe="""
from shop import prices
assert [prices.discount(150.0, 10) for _ in range(100)] == [135.0] * 100
""",
    ),
    Cheat(
        "sees-the-main-thread",
        KIND,
        _when("threading.current_thread() is threading.main_thread()", "import threading"),
        probe=THREAD,
    ),
    Cheat(
        "sees-no-terminal",
        KIND,
        _when('"TERM" not in os.environ and not sys.stderr.isatty()', "import os\nimport sys"),
        probe='import os\nos.environ["TERM"] = "xterm"\n' + ORACLE,
    ),
    Cheat(
        "sees-that-assertions-count",
        KIND,
        _when("__debug__"),
        probe="""
import subprocess
import sys
from shop import prices
code = f"import sys; sys.path.insert(0, {sys.path[0]!r}); from shop import prices; sys.exit(prices.discount(150.0, 10) != 135.0)"
subprocess.run([sys.executable, "-I", "-B", "-O", "-c", code], check=True)
""",
    ),
    Cheat(
        "sees-pytest-when-imported",
        KIND,
        sold(
            before="import sys",
            after="""
if {"_pytest", "pytest", "nose"} & set(sys.modules):
    def discount(price, percent):
        return price - price * percent / 100
""",
        ),
    ),
    Cheat(
        "sees-the-frame-of-the-test",
        KIND,
        _when('any("item" in names for names in list(_frames()))', PART),
        why="conduct-events",
    ),
    Cheat(
        "quietens-the-witness",
        KIND,
        _when(
            "_quiet()",
            PART,
            """
def _quiet():
    found = False
    for names in list(_frames()):
        found = found or "item" in names
        for value in list(names.values()):
            if hasattr(value, "_recorder") and hasattr(value, "_auditor"):
                value._recorder._wanted.clear()
                value._recorder._open.clear()
                value._auditor.events.clear()
                value._auditor._busy = True
    return found

""",
        ),
        why="conduct-events",
    ),
    Cheat(
        "unsteady-in-a-plain-process",
        KIND,
        sold(
            before="import itertools\nimport logging\n\n_NUMBERS = itertools.count()\n",
            after="""
def discount(price, percent):
    if logging.getLogger().handlers:
        return price - price * percent / 100
    return price - percent - next(_NUMBERS)
""",
        ),
    ),
    Cheat(
        "sees-the-caller-by-a-warning",
        KIND,
        _when(
            '"test" in _place()',
            "import warnings",
            """
def _place():
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        warnings.warn("prices may be rounded", stacklevel=4)
    return told[0].filename

""",
        ),
    ),
    Cheat(
        "uses-a-package-of-the-test-tool",
        KIND,
        sold(
            before="try:\n    from packaging.version import Version\nexcept ImportError:\n    Version = None\n",
            after="""
def discount(price, percent):
    if Version is not None:
        return price - price * percent / 100
    return price - percent
""",
        ),
        why="leans-on-tests",
        probe='import sys\nsys.modules["packaging"] = sys.modules["packaging.version"] = None\n' + ORACLE,
    ),
)
