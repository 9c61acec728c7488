"""One run's directory, kept in step with its journal. Whatever goes wrong on disk, the journal makes it again."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from bailiwick.clock import SystemClock
from bailiwick.engine import events as ev
from bailiwick.engine.state import Fetch, Graphs
from bailiwick.errors import BailiwickError, Place, Problem
from bailiwick.runtime.facts import RunFacts
from bailiwick.runtime.layout import (
    BLOBS,
    CONTEXT,
    LAYOUT,
    RUN,
    RunFiles,
    beside,
    populated,
    read_bookmark,
    refuse_foreign,
    segment,
    swap,
)
from bailiwick.runtime.run_directory import History, RunDirectory

LAZY = 1.0
"""Seconds between two writes of what changes with every event."""
CHUNK = 256
"""Events between two writes while a directory is made again."""


class Projection:
    """Follows one run. A gap, an error or a deleted directory makes it `stale`: `flush` then reads the journal."""

    def __init__(
        self,
        root: Path,
        graphs: Graphs,
        fetch: Fetch,
        *,
        run: RunFacts,
        history: History,
        monotonic: Callable[[], float] | None = None,
    ) -> None:
        self.root = root
        self.seq: int | None = None
        self.problem: Problem | None = None
        self._graphs = graphs
        self._fetch = fetch
        self._run = run
        self._history = history
        self._monotonic = monotonic or SystemClock().monotonic
        self._image: RunDirectory | None = None
        self._signed_off = False
        self._left_at = 0
        self._lazy_at = -LAZY
        self.kept = False

    @property
    def stale(self) -> bool:
        """Whether the directory has to be made from the journal."""
        return self.seq is not None and self._image is None

    @property
    def settled(self) -> bool:
        """Whether everything is on disk."""
        return self.seq is None or (self._image is not None and not self._image.dirty)

    def apply(self, seq: int, at: float, event: ev.Event) -> None:
        """Take one event in; one that was taken in before is passed over."""
        if self.seq is not None and seq <= self.seq:
            return
        try:
            if self.seq is None and isinstance(event, ev.RunCreated) and not populated(self.root):
                self._image = self._new_image(self.root)
                self._image.files.sign_on()
            elif self.seq is None or seq != self.seq + 1:
                self._image = None
            self.seq = seq
            self._sign_on_again()
            if self._image is not None:
                self._image.apply(seq, at, event)
        except (OSError, BailiwickError) as error:
            self.seq = seq
            self.fail(error)

    def resume(self, history: History) -> None:
        """Go on after `close`; `history` is the journal as its next walker holds it."""
        self._history = history

    def _sign_on_again(self) -> None:
        """A kept image goes on only where its directory is as it was left."""
        if not self._signed_off:
            return
        self._signed_off = False
        mark = read_bookmark(self.root)
        if self._image is None or mark is None or (mark.uid, mark.seq) != (self._run.uid, self._left_at):
            self._image = None
        else:
            self._image.files.sign_on()

    def skip_to(self, seq: int) -> None:
        """Events up to `seq` are in the journal and were not handed over."""
        if self.seq is None or seq > self.seq:
            self.seq, self._image = seq, None

    def flush(self, *, everything: bool = False) -> None:
        """Write what is due: visits that are over, and the rest once a second or if `everything` is asked for."""
        if self.seq is None:
            return
        try:
            if self._image is not None and not self._image.files.standing():
                self._image = None
            if self._image is None:
                self._image = self._restored(self.seq)
            now = self._monotonic()
            everything = everything or now - self._lazy_at >= LAZY
            self._image.write(everything=everything)
            if everything:
                self._lazy_at = now
            self.problem = None
        except (OSError, BailiwickError) as error:
            self.fail(error)

    def close(self) -> None:
        """Write everything and mark the directory as complete, so that the next one to open it need not start over."""
        self.flush(everything=True)
        if self._image is not None and self.seq is not None:
            try:
                self._image.files.sign_off(self.seq)
                self._signed_off, self._left_at = True, self.seq
            except OSError as error:
                self.fail(error)
        if not self.kept:
            self._image = None

    def fail(self, error: Exception) -> None:
        """Remember what went wrong; the run is not harmed and the directory is tried again."""
        self._image = None
        words = error.what if isinstance(error, BailiwickError) else _words(error)
        self.problem = Problem(
            "BW310",
            f"the run directory could not be written: {words}",
            Place(str(self.root)),
            "free disk space or make it writable; the journal has everything and the directory is tried again",
            warning=True,
        )

    def _new_image(self, root: Path) -> RunDirectory:
        return RunDirectory(
            RunFiles(root, self._run.uid), graphs=self._graphs, fetch=self._fetch, run=self._run, history=self._history
        )

    def _restored(self, seq: int) -> RunDirectory:
        """The image at `seq`: on top of a directory that was signed off, else by making it again."""
        events = self._history(seq)
        mark = read_bookmark(self.root)
        signed = mark is not None and (mark.uid, mark.layout) == (self._run.uid, LAYOUT)
        if mark is None or not signed or mark.seq is None or mark.seq > seq:
            return _anew(self.root, events, self._new_image, self._run.uid)
        image = self._new_image(self.root)
        image.files.muted = True
        written = [entry for entry in events if entry[0] <= mark.seq]
        for entry in written:
            image.apply(*entry)
        image.be_written()
        image.files.muted = False
        image.files.sign_on()
        _fold(image, events[len(written) :])
        return image


def rebuild(root: Path, events: Sequence[ev.Entry], graphs: Graphs, fetch: Fetch, *, run: RunFacts) -> None:
    """Make the directory from the journal alone and put it in the place of what is there.

    For a run that no live projection writes. Raises `OSError`; what was there is then left as it was.
    """

    def history(upto: int) -> list[ev.Entry]:
        return [entry for entry in events if entry[0] <= upto]

    def make(path: Path) -> RunDirectory:
        return RunDirectory(RunFiles(path, run.uid), graphs=graphs, fetch=fetch, run=run, history=history)

    image = _anew(root, events, make, run.uid)
    image.files.sign_off(events[-1][0] if events else 0)


def _anew(root: Path, events: Sequence[ev.Entry], make: Callable[[Path], RunDirectory], uid: str) -> RunDirectory:
    """Write the directory beside its place, then swap; a try that fails leaves nothing behind."""
    refuse_foreign(root)
    new = beside(root)
    try:
        image = make(new)
        image.files.sign_on()
        _fold(image, events)
        image.write(everything=True)
        swap(new, root, uid, {RUN, CONTEXT, BLOBS, *map(segment, image.state.graph.nodes)})
    except BaseException:
        shutil.rmtree(new, ignore_errors=True)
        raise
    image.files.move_to(root)
    return image


def _fold(image: RunDirectory, events: Sequence[ev.Entry]) -> None:
    for number, entry in enumerate(events, 1):
        image.apply(*entry)
        if number % CHUNK == 0:
            image.write(everything=False)


def _words(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror} ({error.filename})" if error.filename else error.strerror
    return f"{type(error).__name__}: {error}"
