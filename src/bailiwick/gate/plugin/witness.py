"""Runs pytest inside the sandbox and tells the gate outside what happens, one record after the other.

A bare interpreter gets this file as text, behind those that it uses. It uses nothing of ours, runs on Python 3.8 and
pytest 6, and takes what it relies on before any code of the tree is imported. It shares its process with the code
under test: what it says is evidence, which the gate compares with other evidence. There are three ways to run: plain;
`absent`, in which changed functions raise; `watched`, in which comparisons are asked again with near values and each
test that passes is made to fail at its end.
"""

from __future__ import annotations

import builtins
import importlib.metadata
import inspect
import os
import sys
import tempfile
from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bailiwick.gate.plugin.alone import can_be_alone, twice_alone  # noqa: TC004 - sent before this
    from bailiwick.gate.plugin.asking import Nearby  # noqa: TC004 - as above
    from bailiwick.gate.plugin.auditing import Auditor, TestCode, Tree, grafts, origins  # noqa: TC004 - sent before this
    from bailiwick.gate.plugin.calls import Recorder, repeat  # noqa: TC004 - as above
    from bailiwick.gate.plugin.internals import Internals  # noqa: TC004 - as above
    from bailiwick.gate.plugin.testing import Absence, Limit, Tests, code_of  # noqa: TC004 - as above
    from bailiwick.gate.plugin.wire import hide_input, open_wire  # noqa: TC004 - as above

NO_PYTEST = 93
"""The exit code that says that this interpreter has no pytest."""
OWN_SETTINGS = "_hypothesis_internal_use_settings"
TEXT = 6000
CHUNK = 200
ORDER: dict[str, dict[str, bool]] = {
    "pytest_load_initial_conftests": {"tryfirst": True},
    "pytest_cmdline_main": {"hookwrapper": True, "tryfirst": True},
    "pytest_configure": {"tryfirst": True},
    "pytest_ignore_collect": {"tryfirst": True},
    "pytest_collection_modifyitems": {"trylast": True},
    "pytest_runtest_protocol": {"hookwrapper": True, "tryfirst": True},
    "pytest_runtest_setup": {"hookwrapper": True, "tryfirst": True},
    "pytest_runtest_call": {"hookwrapper": True, "tryfirst": True},
    "pytest_runtest_teardown": {"hookwrapper": True, "tryfirst": True},
    "pytest_runtest_makereport": {"hookwrapper": True, "tryfirst": True},
    "pytest_runtest_logreport": {"tryfirst": True},
    "pytest_sessionfinish": {"hookwrapper": True, "tryfirst": True},
}
SETTINGS: dict[str, Any] = {
    "numprocesses": 0, "dist": "no", "tx": [], "maxfail": 0, "stepwise": False, "lf": False, "failedfirst": False,
    "randomly_reorganize": False, "randomly_seed": 1, "hypothesis_seed": 0,
}  # fmt: skip
"""Options that would leave tests out, order them by chance or move them to other processes; set where they exist."""
PATCHING = frozenset({"monkeypatch", "mocker", "patch", "class_mocker", "module_mocker", "session_mocker"})


class Witness:
    """The plugin. Its hooks lie around those of all others; which ones is in `ORDER`."""

    def __init__(self, send: Any, request: dict[str, Any], failure: Any) -> None:
        self._send = send
        self._tree = Tree(request["root"], request["environment"])
        self._only = None if request.get("only") is None else frozenset(request["only"])
        self._within = None if request.get("within") is None else frozenset(request["within"])
        self._left_out = frozenset(request.get("left_out") or ())
        self._mode = request["mode"]
        self._changed_files = request["changed"]
        self._collect_only = bool(request.get("collect_only"))
        self._on_configure = request.get("on_configure")
        self.report_file = os.path.join(tempfile.mkdtemp(), "report.xml")  # noqa: PTH118 - also where pathlib is patched
        rewriting: Any = sys.modules.get("_pytest.assertion.rewrite")
        self._tests = Tests(TestCode(rewriting))
        self._auditor = Auditor(self._tree, send)
        self._internals = Internals()
        self._limit = Limit(request.get("limit"))
        self._nearby = Nearby(lambda file: self._tree.relative(file) in request["suspected"])
        self._absence = Absence(request["token"], failure)
        self._recorder = Recorder(self._tree.relative, request["calls"], self._auditor)
        self._replayed = list(enumerate(request["replayed"]))
        self._pairs = request["pairs"]
        self._alone = set(request["alone"])
        if self._mode != "plain":
            vars(builtins)[request["token"]] = self._nearby if self._mode == "watched" else self._absence
        self._tools: frozenset[str] = frozenset()
        self._changed: set[str] = set()
        self._hooks: Counter[str] = Counter()
        self._deselected: list[str] = []
        self._notes: dict[tuple[str, str], dict[str, Any]] = {}
        self._manager: Any = None
        self._settings = ""
        self._count = 0
        self._rewritten = 0
        self._relay: dict[str, Any] = {}

    def pytest_load_initial_conftests(self) -> None:
        """The last moment before code of the tree is imported."""
        self._tools = frozenset(sys.modules)
        self._internals.add()
        self._internals.switches.settle()
        self._auditor.start()

    def pytest_cmdline_main(self, config: Any) -> Any:
        """Before anything starts: every test in this process, in the order of the files, all of them."""
        self._settle(config)
        yield

    def pytest_configure(self, config: Any) -> None:
        """Every plugin is there; the conftest files of the start too."""
        self._settle(config)
        self._manager = config.pluginmanager
        self._settings = self._tree.relative(str(getattr(config, "inipath", None) or getattr(config, "inifile", "")))
        self._relay = {name: caller for name, caller in vars(config.hook).items() if name.startswith("pytest_")}
        if self._on_configure is not None:
            self._on_configure()

    def _settle(self, config: Any) -> None:
        for name, value in SETTINGS.items():
            if hasattr(config.option, name):
                setattr(config.option, name, value)
        if hasattr(config.option, "xmlpath"):
            config.option.xmlpath = self.report_file
        if self._collect_only:
            config.option.collectonly = True
        if self._mode != "plain":  # most of them fail: to tell each failure well would take longer than they do
            config.option.tbstyle, config.option.showlocals, config.option.verbose = "no", False, -1

    def ignores(self, path: str) -> bool | None:
        """Whether a file need not be collected: where only some tests are asked for, in other files there are none."""
        inside = self._tree.relative(path)
        skipped = self._within is not None and inside.endswith(".py") and inside not in self._within
        return True if skipped and not inside.endswith("__init__.py") else None

    def pytest_collectreport(self, report: Any) -> None:
        """A file that can't be collected is told by its name."""
        if report.failed:
            self._send({"t": "uncollected", "id": report.nodeid, "text": _text(report)})

    def pytest_deselected(self, items: Any) -> None:
        """Somebody leaves tests out."""
        self._deselected += [item.nodeid for item in items]

    def pytest_collection_modifyitems(self, items: Any) -> None:
        """Where only some are asked for, keep those."""
        only, left_out = self._only, self._left_out
        items[:] = [item for item in items if (only is None or item.nodeid in only) and item.nodeid not in left_out]

    def pytest_collection_finish(self, session: Any) -> None:
        """Tell which tests there are and where their code is."""
        if self._limit.seconds is not None:
            _hasten(session.items)
        found = [self._item(item) for item in session.items]
        for start in range(0, len(found), CHUNK):
            self._send({"t": "items", "items": found[start : start + CHUNK]})
        for start in range(0, len(self._deselected), CHUNK):
            self._send({"t": "deselected", "ids": self._deselected[start : start + CHUNK]})
        if self._mode == "watched" and not _raises_warnings(session.config):
            bare = [item.nodeid for item in session.items if can_be_alone(item)]
            for start in range(0, len(bare), CHUNK):
                self._send({"t": "bare", "ids": bare[start : start + CHUNK]})
        self._changed.update(self._tests.keep(session.items))
        self._look(thoroughly=True)

    def _item(self, item: Any) -> dict[str, Any]:
        found = {"id": item.nodeid, "path": self._relative(str(getattr(item, "path", None) or item.fspath))}
        code = code_of(item)
        if code is not None:
            found.update(code_path=self._relative(code.co_filename), line=code.co_firstlineno, name=code.co_name)
        return found

    def _relative(self, path: str) -> str:
        return self._tree.relative(path) or path

    def _look(self, *, thoroughly: bool = False) -> None:
        """Note what was exchanged or added since the start; hooks one by one only if their number changed."""
        inside, self._rewritten = self._auditor.rewritten != self._rewritten, self._auditor.rewritten
        self._changed.update(self._internals.all_changed() if thoroughly else self._internals.changed(inside=inside))
        if self._manager is None:
            return
        relay = vars(self._manager.hook)
        self._changed.update(f"hook {name}" for name, caller in self._relay.items() if relay.get(name) is not caller)
        taking_part = [(name, caller.get_hookimpls()) for name, caller in relay.items() if name in self._relay]
        count = sum(len(impls) for _, impls in taking_part)
        if thoroughly or count != self._count:
            self._count = count
            self._hooks |= Counter(f"{self._place(impl)}:{name}" for name, impls in taking_part for impl in impls)

    def _place(self, impl: Any) -> str:
        code = getattr(inspect.unwrap(impl.function), "__code__", None)
        return "?" if code is None else self._relative(code.co_filename)

    def pytest_runtest_protocol(self, item: Any) -> Any:
        """Before each test nothing may have been exchanged: what an honest test patches it has put back."""
        if self._mode == "plain":
            self._look()
            self._changed.update(self._tests.changed(item))
        yield

    def _replay(self, item: Any) -> None:
        """Make recorded calls in the place of a test, and run the test as if without its tool."""
        while self._replayed:
            number, call = self._replayed.pop(0)
            self._send({"t": "call", "number": number, **repeat(call)})
        name = item.nodeid.partition("[")[0]
        if name in self._alone:
            self._alone.discard(name)
            for test, ends in twice_alone(self._tree.root, [name], hidden=False):
                self._send({"t": "alone", "test": test, "ends": ends})

    def pytest_runtest_setup(self, item: Any) -> Any:
        """A test begins."""
        self._absence.hits.clear()
        self._absence.switch(on=self._mode == "absent")
        yield

    def pytest_runtest_call(self, item: Any) -> Any:
        """See by ourselves whether the test raises, whatever reports say later."""
        run = item.runtest
        note = self._notes.setdefault((item.nodeid, "call"), {})
        records = self._mode == "watched" and not _patches(item)

        def runtest() -> None:
            if self._replayed or self._alone:
                self._replay(item)
            self._nearby.begin()
            try:
                self._limit.start()
                if records:
                    self._recorder.start()
                run()
            except BaseException as error:
                note["raised"] = type(error).__name__
                raise
            finally:
                if records:
                    self._recorder.stop()
                self._limit.stop()
                self._absence.switch(on=False)
            if getattr(item, "_excinfo", None):  # unittest's own way to keep what a test raised
                note["raised"] = "kept"
                return
            note["returned"] = True
            if self._mode == "watched":
                raise AssertionError("every test is made to fail in this run, to see that a failure is told")

        item.runtest = runtest
        try:
            yield
        finally:
            item.__dict__.pop("runtest", None)

    def pytest_runtest_teardown(self, item: Any) -> Any:
        """What a test leaves behind may not hold up the others either."""
        self._absence.switch(on=False)
        if self._mode == "watched":
            self._send({"t": "near", "id": item.nodeid, **self._nearby.end()})
        elif self._absence.hits:
            self._send({"t": "hits", "id": item.nodeid, "functions": sorted(self._absence.hits)})
        self._limit.start()
        try:
            yield
        finally:
            self._limit.stop()

    def pytest_runtest_makereport(self, item: Any, call: Any) -> Any:
        """What was caught, and what the report made of it."""
        outcome = yield
        note = self._notes.setdefault((item.nodeid, call.when), {})
        note["caught"] = "" if call.excinfo is None else call.excinfo.type.__name__
        try:
            note["made"] = str(outcome.get_result().outcome)
        except BaseException:  # noqa: BLE001 - it is raised again by pluggy itself
            note["made"] = "raised"

    def pytest_runtest_logreport(self, report: Any) -> None:
        """One outcome."""
        sub = hasattr(report, "context")
        note = {} if sub else self._notes.pop((report.nodeid, report.when), {})
        record = {
            "t": "report",
            "id": report.nodeid,
            "when": report.when,
            "outcome": str(report.outcome),
            "sub": sub,
            "xfail": hasattr(report, "wasxfail"),
            "text": _text(report) if report.outcome == "failed" else "",
            "seconds": float(getattr(report, "duration", 0.0)),
        }
        record.update(note)
        self._send(record)

    def _module_path(self) -> list[str]:
        """Where modules are looked for; the top of the tree, which may be elsewhere next time, as @."""
        root = self._tree.root
        places = [place or root for place in sys.path]
        return ["@" + p[len(root) :] if p == root or p.startswith(root + os.sep) else p for p in places]

    def pytest_sessionfinish(self, session: Any, exitstatus: Any) -> Any:
        """The counts as pytest itself has them."""
        yield
        self._look(thoroughly=True)
        reporter = self._manager.get_plugin("terminalreporter") if self._manager is not None else None
        stats = getattr(reporter, "stats", {})
        if self._mode == "watched":
            self._send({"t": "calls", "calls": list(self._recorder.calls.values()), "path": self._module_path()})
        self._send({"t": "audit", **self._auditor.told()})
        if self._pairs:
            self._send({"t": "pairs", "apart": self._nearby.apart(self._pairs)})
        record = {
            "t": "finish",
            "collected": session.testscollected,
            "failed": session.testsfailed,
            "status": int(session.exitstatus),
            "shown": {key: len(found) for key, found in stats.items() if key},
            "terminal": reporter is not None,
            "changed": sorted(self._changed),
            "hooks": dict(self._hooks),
            "settings": [self._settings] if self._settings else [],
            "grafts": grafts(self._tree),
            "origins": origins(self._tree, self._changed_files, self._tools),
        }
        self._send(record)


def _patches(item: Any) -> bool:
    """Whether a test exchanges parts of the product for its own time: what it sees then is not how the product is."""
    if PATCHING.intersection(getattr(item, "fixturenames", ())):
        return True
    code = code_of(item)
    return code is not None and bool(PATCHING.intersection(code.co_names))


def _raises_warnings(config: Any) -> bool:
    """Whether the project turns warnings into errors: without its tool nothing does."""
    given = [*config.getini("filterwarnings"), *(getattr(config.option, "pythonwarnings", None) or ())]
    return any(str(one).startswith("error") for one in given)


def _hasten(items: Any) -> None:
    """Where all tests fail nobody needs the smallest example; what hypothesis calls it inside may change."""
    hypothesis: Any = sys.modules.get("hypothesis")
    if hypothesis is None:
        return
    for item in items:
        function = getattr(getattr(item, "obj", None), "__func__", getattr(item, "obj", None))
        known = getattr(function, OWN_SETTINGS, None)
        if isinstance(known, hypothesis.settings):
            phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
            setattr(function, OWN_SETTINGS, hypothesis.settings(known, phases=phases, deadline=None))


def _text(report: Any) -> str:
    text = str(getattr(report, "longreprtext", ""))
    return text if len(text) <= TEXT else text[: TEXT // 3] + "\n…\n" + text[-2 * TEXT // 3 :]


def _without_tree(request: dict[str, Any]) -> Any:
    """Keep pytest from loading plugins that a package directory in the tree announces; gives back how to undo it."""
    real = importlib.metadata.distributions
    root = request["root"] + os.sep
    kept = tuple(path + os.sep for path in request["environment"])

    def distributions(*args: Any, **options: Any) -> Any:
        for found in real(*args, **options):
            place = os.path.realpath(str(getattr(found, "_path", "")))
            if not place.startswith(root) or place.startswith(kept):
                yield found

    def undo() -> None:
        importlib.metadata.distributions = real

    importlib.metadata.distributions = distributions
    return undo


def _compile(send: Any, paths: Any) -> None:
    """Say which changed files are no Python: whoever never imports them would not notice."""
    for path in paths:
        try:
            with open(path, "rb") as file:  # noqa: PTH123 - also where pathlib is patched
                compile(file.read(), path, "exec", dont_inherit=True)
        except (SyntaxError, ValueError) as error:
            send({"t": "syntax", "path": path, "line": getattr(error, "lineno", 0) or 0, "what": str(error)[:300]})
        except OSError:
            continue


def _add_hooks(pytest: Any) -> None:
    """Mark the hooks, and add the one whose parameter has another name in old versions."""
    first = int(str(pytest.__version__).partition(".")[0])

    def by_collection_path(self: Any, collection_path: Any) -> Any:
        return self.ignores(str(collection_path))

    def by_path(self: Any, path: Any) -> Any:
        return self.ignores(str(path))

    plugin: Any = Witness
    plugin.pytest_ignore_collect = by_collection_path if first >= 7 else by_path
    mark: Any = pytest.hookimpl
    for name, options in ORDER.items():
        setattr(plugin, name, mark(**options)(getattr(plugin, name)))


def main(request: dict[str, Any]) -> None:
    """Run pytest as asked and end with its exit code."""
    hide_input()
    request["root"] = os.path.realpath(os.getcwd())  # noqa: PTH109 - also where pathlib is patched
    send = open_wire(request["handle"], bytes.fromhex(request.pop("key")))
    try:
        import pytest
    except ImportError as error:
        print(f"{sys.executable}: {error}", file=sys.stderr)  # noqa: T201 - this process has no other way to say it
        sys.exit(NO_PYTEST)
    _add_hooks(pytest)
    request["on_configure"] = _without_tree(request)
    witness = Witness(send, request, pytest.fail.Exception)
    sys.argv = ["pytest", *request["args"]]
    if request["as_module"]:
        sys.path.insert(0, request["root"])
    send({"t": "start", "pytest": pytest.__version__, "python": sys.version.split()[0]})
    _compile(send, request["compiled"])
    code = int(pytest.main(list(request["args"]), plugins=[witness]))
    try:
        with open(witness.report_file, encoding="utf-8", errors="replace") as report:  # noqa: PTH123 - as above
            send({"t": "file", "head": report.read(2000)})
    except OSError:
        send({"t": "file", "head": ""})
    send({"t": "end", "code": code})
    if request.get("limit") is not None:  # a thread that was left behind would hold up the end
        sys.stdout.flush()
        os._exit(code)
    sys.exit(code)
