"""One run of pytest in a fresh checkout: started through our own text, heard over a pipe that only this run has."""

from __future__ import annotations

import json
import marshal
import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib.util import MAGIC_NUMBER
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from bailiwick.gate.backends.command import READ, gate_variables
from bailiwick.gate.backends.pytest_command import PytestCommand, PytestPython, find_interpreter
from bailiwick.gate.backends.ran import RanTests, code_of, open_pipe, timed
from bailiwick.gate.outcomes import PytestSession, Records, read_records
from bailiwick.gate.run import NOT_FOUND
from bailiwick.ids import Json
from bailiwick.processes.command import Exit
from bailiwick.sandbox.disk import disk_words

if TYPE_CHECKING:
    from bailiwick.gate.port import CheckContext, Which

NO_PYTEST = 93
"""The exit code by which the text inside says that its interpreter has no pytest."""
REPLAY = 600.0
"""Seconds that all recorded calls together may take."""
START = (
    "import sys;sys.path[:]=[p for p in sys.path if p];r=__import__('json').loads(sys.stdin.buffer.read());"
    "m=__import__('_frozen_importlib_external').MAGIC_NUMBER.hex();n={'__name__':'witness'};t=r.pop('texts');"
    "c=[__import__('marshal').loads(bytes.fromhex(x)) for x in r.pop('code').get(m,())];"
    "[exec(x,n) for x in c or [compile(x,'<witness>','exec') for x in t]];n[r.pop('entry')](r)"
)
"""Runs what is sent: as it was compiled here where the Python inside is the same, else as text."""
Mode = Literal["plain", "absent", "watched"]
"""How tests are run: as they are; with changed functions raising; asking comparisons again and failing at the end."""


@dataclass(frozen=True, slots=True)
class PytestRequest:
    """What to run: on which tree, with which files in place of its own, which of the tests.

    `limit` is for tests that must fail: the seconds after which one that goes on is ended; `timeout` is then that of
    the whole run, where the check's own is longer.
    """

    which: Which
    files: Mapping[str, bytes | None] = field(default_factory=dict)
    only: Collection[str] | None = None
    within: Collection[str] | None = None
    """Files in which tests are looked for; everywhere where none are given."""
    left_out: Collection[str] = ()
    """Ids of tests that are not run."""
    collect_only: bool = False
    limit: float | None = None
    timeout: float | None = None
    mode: Mode = "plain"
    token: str = ""
    """The name by which instrumented files call what runs inside."""
    calls: tuple[tuple[str, int, str], ...] = ()
    """Functions whose calls are recorded: path, first line, qualified name."""
    replayed: tuple[dict[str, Json], ...] = ()
    """Recorded calls that are made again in the first test."""
    pairs: tuple[list[Json], ...] = ()
    """Pairs of objects, of which it is asked whether they are told apart here."""
    alone: tuple[str, ...] = ()
    """Tests that are also run as if without their tool, in their own place."""


@dataclass(frozen=True, slots=True)
class Plainly:
    """What to do in plain processes: recorded calls, and tests by the id of their function.

    The calls are made once more without the files `hidden` and without the packages `blocked`. All tests together may
    take `seconds`.
    """

    calls: Sequence[dict[str, Json]] = ()
    tests: Sequence[str] = ()
    path: Sequence[str] = ()
    hidden: Sequence[str] = ()
    blocked: Sequence[str] = ()
    seconds: float = 60.0


@dataclass(frozen=True, slots=True)
class Runner:
    """Runs the pytest of one check."""

    call: PytestCommand
    context: CheckContext
    timeout: float | None

    @property
    def changed(self) -> list[str]:
        """The Python files that the change touches; deleted ones too, since a copy may be imported in their place."""
        return [change.path for change in self.context.changes if change.path.endswith(".py")]

    @property
    def _compiled(self) -> list[str]:
        """Those of them that have to be Python."""
        return [change.path for change in self.context.changes if change.status != "D" and change.path.endswith(".py")]

    async def run(self, asked: PytestRequest) -> RanTests:
        """Run once and hear it to its end. Raises `OSError` where nothing can be started."""
        tree, python = await self._place(asked.which, asked.files)
        if python is None:
            return RanTests(PytestSession(), Exit(NOT_FOUND, b"", b"", 0.0), missing="python3")
        longest = [seconds for seconds in (self.timeout, asked.timeout) if seconds is not None]
        records, end = await self._heard(
            tree,
            (python.path, "-s", "-B", *self.call.flags),
            self._request(asked, python.environment),
            env=self._variables(tree),
            timeout=min(longest, default=None),
        )
        if end.code == NO_PYTEST and not records.all:
            return RanTests(PytestSession(), end, missing="pytest")
        session = read_records(records, code_of(end), collect_only=asked.collect_only)
        missing = python.path if end.code == NOT_FOUND and not records.all else ""
        return RanTests(timed(session, end, disk_words(end)), end, missing=missing)

    async def _place(self, which: Which, files: Mapping[str, bytes | None]) -> tuple[Path, PytestPython | None]:
        """A fresh checkout, and the Python to use there."""
        tree = await self.context.fresh(which, files or None)
        return tree, find_interpreter(self.call, self.context, tree, await self.context.files(which))

    def _request(self, asked: PytestRequest, environment: tuple[str, ...]) -> dict[str, Json]:
        return {
            "texts": texts_inside(),
            "code": {MAGIC_NUMBER.hex(): code_inside()},
            "entry": "main",
            "args": list(self.call.args),
            "as_module": self.call.as_module,
            "environment": list(environment),
            "only": None if asked.only is None else sorted(asked.only),
            "within": _within(asked),
            "left_out": sorted(asked.left_out),
            "collect_only": asked.collect_only,
            "limit": asked.limit,
            "mode": asked.mode,
            "token": asked.token or "_",
            "calls": asked.calls,
            "replayed": asked.replayed,
            "pairs": asked.pairs,
            "alone": asked.alone,
            "changed": self.changed if asked.which == "proposed" else [],
            "suspected": self.changed,
            "compiled": self._compiled if asked.which == "proposed" and asked.mode == "plain" else [],
        }

    async def _heard(
        self,
        tree: Path,
        interpreter: Sequence[str],
        request: dict[str, Json],
        *,
        env: dict[str, str],
        timeout: float | None,
    ) -> tuple[Records, Exit]:
        """Run what is sent in a new process, and hear it to its end."""
        key = secrets.token_bytes(32)
        records, sandboxes = Records(key), self.context.sandboxes
        with open_pipe(records) as handle:
            end = await sandboxes.run(
                sandboxes.sandbox_spec("gate", tree, environment=self.context.environment),
                (*interpreter, "-c", START),
                env=env,
                timeout=timeout,
                cancel=self.context.cancel,
                keep=READ,
                stdin=json.dumps({**request, "key": key.hex(), "handle": handle}).encode(),
                pass_fds=(handle,),
            )
        return records, end

    async def replay(
        self, which: Which, files: Mapping[str, bytes | None], asked: Plainly
    ) -> dict[str, list[dict[str, Json]]]:
        """Make calls and run tests in plain processes; what each of them did by its kind, empty where nobody knows."""
        tree, python = await self._place(which, files)
        if python is None:
            return {}
        texts, code = texts_inside()[:-1], {MAGIC_NUMBER.hex(): code_inside()[:-1]}
        request = {"texts": texts, "code": code, "entry": "replay_main", **asdict(asked)}
        hidden = ("CI", "PYTHONDONTWRITEBYTECODE")
        env = {name: value for name, value in self._variables(tree).items() if name not in hidden}
        records, _ = await self._heard(tree, (python.path,), request, env=env, timeout=REPLAY)
        kinds = ("call", "alone", "without")
        return {kind: [record for record in records.all if record.get("t") == kind] for kind in kinds}

    def _variables(self, tree: Path) -> dict[str, str]:
        """The environment inside; a proposed tree holds no byte code."""
        return {**gate_variables(self.context, tree), "PYTHONHASHSEED": "0", "PYTHONNOUSERSITE": "1"}


def _within(asked: PytestRequest) -> list[str] | None:
    """The files that have to be collected."""
    if asked.within is not None:
        return sorted(asked.within)
    return None if asked.only is None else sorted({test.partition("::")[0] for test in asked.only})


@cache
def texts_inside() -> tuple[str, ...]:
    """What runs inside, in the order in which it is needed."""
    folder = Path(__file__).parent.parent / "plugin"
    names = (
        "wire",
        "internals",
        "auditing",
        "nearby",
        "standin",
        "alone",
        "surroundings",
        "calls",
        "parts",
        "asking",
        "testing",
        "witness",
    )
    return tuple((folder / f"{name}.py").read_text("utf-8") for name in names)


@cache
def code_inside() -> tuple[str, ...]:
    """The same, compiled: to compile it at each start takes as long as many a project's tests."""
    return tuple(marshal.dumps(compile(text, "<witness>", "exec", dont_inherit=True)).hex() for text in texts_inside())
