"""The full text index over the notes: made from the files alone, so that it can be thrown away at any time.

Before each answer it is brought up to date with the folder. Looking at every file of a large brain takes longer than
the question; there it is done every few seconds, in between folders are looked at, and the notes that are found.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from bailiwick.brain.model import FoundNote, Note, NoteQuery
from bailiwick.brain.notes import FolderListing, History, NoteFolder, Stamp
from bailiwick.brain.terms import (
    MOST_ROWS,
    chosen,
    facets_of,
    indexed,
    phrase,
    question,
    scope_facet,
    status_facet,
    words,
)

if TYPE_CHECKING:
    import apsw

VERSION = 2
LARGE = 1000
"""Notes from which on a look at every file is worth a thought."""
LOOK_EVERY = 10.0
WAIT = 30.0
"""Seconds that another process may take to bring the index up to date."""
_ROUNDS = 3
_BULK = 1000
_SCHEMA = f"""
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE folder (path TEXT PRIMARY KEY, changed INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE last (path TEXT PRIMARY KEY, revision TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE note (
  number INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, stamp TEXT NOT NULL, id TEXT NOT NULL, scope TEXT NOT NULL,
  status TEXT NOT NULL, type TEXT NOT NULL, updated REAL NOT NULL
);
CREATE INDEX note_id ON note (id);
CREATE INDEX note_age ON note (updated DESC);
CREATE INDEX note_scope ON note (scope, status, updated DESC);
CREATE VIRTUAL TABLE words USING fts5 (
  title, tags, body, facet, content = '', contentless_delete = 1, tokenize = 'porter unicode61 remove_diacritics 2'
);
PRAGMA user_version = {VERSION};
"""
_RANKED = """
SELECT note.path, note.stamp FROM (
  SELECT rowid AS number, bm25(words, 4.0, 3.0, 1.0, 0.0) AS score FROM words WHERE words MATCH ?
  ORDER BY rowid DESC LIMIT ?
) AS hit JOIN note USING (number) WHERE {limits} ORDER BY hit.score, note.updated DESC, note.path LIMIT ?
"""
_NEWEST = "SELECT path, stamp FROM note WHERE {limits} ORDER BY updated DESC, path LIMIT ?"

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class NoteFilter:
    """What every row of an answer has to be, as SQL: no answer is built without it."""

    sql: str
    bindings: tuple[str, ...]

    @classmethod
    def of(cls, wanted: NoteQuery) -> NoteFilter:
        """The limits of a question."""
        parts = [f"status IN ({_marks(wanted.statuses)})"]
        bindings: list[str] = [*wanted.statuses]
        if wanted.scopes is not None:
            parts.append(f"scope IN ({_marks(wanted.scopes)})")
            bindings += wanted.scopes
        return cls(" AND ".join(parts), tuple(bindings))


class Index:
    """The index of one folder. Threads take turns; processes may share the file."""

    def __init__(self, file: Path, folder: NoteFolder, now: Callable[[], float]) -> None:
        self.file = file
        self.folder = folder
        self._now = now
        self._db: apsw.Connection | None = None
        self._one = threading.Lock()

    def search(self, wanted: NoteQuery) -> list[FoundNote]:
        """Notes as they are now, by the note ranking of `_RANKED`; of a text without words the newest first."""
        return self._do(lambda db: self._search(db, wanted))

    def named(self, name: str) -> list[FoundNote]:
        """The notes with this id; where there is none, those whose id begins so."""
        return self._do(lambda db: self._named(db, name))

    def count(self) -> int:
        """How many notes there are."""
        return self._do(lambda db: int(_value(self._fresh(db), "SELECT count(*) FROM note")))

    def scopes(self) -> list[str]:
        """Every scope that has notes."""
        return self._do(lambda db: [str(row[0]) for row in self._fresh(db).execute("SELECT DISTINCT scope FROM note")])

    def commits_known(self) -> tuple[str, str]:
        """Up to which state of the repository commits are known: its mark, and the commit."""
        return self._do(lambda db: (_meta(db, "mark"), _meta(db, "head")))

    def learn_commits(self, mark: str, history: History) -> None:
        """Keep the last commit of files, as of a state of the repository."""

        def keep(db: apsw.Connection) -> None:
            with _writing(db):
                if history.whole:
                    db.execute("DELETE FROM last")
                db.executemany("INSERT OR REPLACE INTO last VALUES (?, ?)", list(history.commits.items()))
                _set_meta(db, mark=mark, head=history.head)

        self._do(keep)

    def rebuild(self) -> int:
        """Throw everything away and read all notes again; gives their number."""

        def work(db: apsw.Connection) -> int:
            with _writing(db):
                _drop(db)
                db.execute(_SCHEMA)
            return int(_value(self._fresh(db), "SELECT count(*) FROM note"))

        return self._do(work)

    def close(self) -> None:
        """Let go of the file; the next question opens it again."""
        with self._one:
            self._close()

    def _close(self) -> None:
        if self._db is not None:
            self._db.close(True)
            self._db = None

    def _do(self, work: Callable[[apsw.Connection], _T]) -> _T:
        """Work with the database; one that is damaged is thrown away and made again, once."""
        import apsw

        with self._one:
            try:
                return work(self._opened())
            except (apsw.CorruptError, apsw.NotADBError, apsw.SQLError, apsw.FormatError):
                self._close()
                self._discard()
                return work(self._opened())

    def _discard(self) -> None:
        for suffix in ("", "-wal", "-shm", "-journal"):
            self.file.with_name(self.file.name + suffix).unlink(missing_ok=True)

    def _opened(self) -> apsw.Connection:
        import apsw

        if self._db is None:
            try:
                self.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._db = _connected(str(self.file))
            except (
                OSError,
                apsw.CantOpenError,
                apsw.ReadOnlyError,
                apsw.PermissionsError,
                apsw.FullError,
                apsw.IOError,
            ):
                self._db = _connected(":memory:")
        return self._db

    def _fresh(self, db: apsw.Connection) -> apsw.Connection:
        """Bring the index up to date with the folder; where another process does that for too long, answer as it is."""
        import apsw

        if self._looked_lately(db) and self.folder.same_folders(_folders(db)):
            return db
        survey = self.folder.survey()
        if _is_current(db, survey) and len(survey.files) < LARGE:
            return db
        try:
            with _writing(db):
                changed, gone = _differences(db, survey)
                self._take_in(db, changed, gone)
                db.execute("DELETE FROM folder")
                db.executemany("INSERT INTO folder VALUES (?, ?)", list(survey.folders.items()))
                _set_meta(db, looked=str(self._now()), notes=str(len(survey.files)))
                if len(changed) >= _BULK:
                    db.execute("INSERT INTO words (words) VALUES ('optimize')")
        except apsw.BusyError:
            return db
        return db

    def _looked_lately(self, db: apsw.Connection) -> bool:
        looked = float(_meta(db, "looked") or 0)
        return int(_meta(db, "notes") or 0) >= LARGE and abs(self._now() - looked) < LOOK_EVERY

    def _take_in(self, db: apsw.Connection, changed: Iterable[str], gone: Iterable[str]) -> None:
        """Read files again, and forget others."""
        for path in gone:
            _forget(db, path)
        for path in changed:
            read = self.folder.read(path)
            if read is None:
                _forget(db, path)
            else:
                _learn(db, *read)

    def _search(self, db: apsw.Connection, wanted: NoteQuery) -> list[FoundNote]:
        self._fresh(db)
        for _ in range(_ROUNDS):
            rows = _rows(db, wanted)
            stale = [path for path, stamp in rows if self.folder.stamp(path) != stamp]
            if not stale:
                break
            with _writing(db):
                self._take_in(db, stale, ())
        return self._read(db, (path for path, _ in _rows(db, wanted)), wanted)

    def _read(self, db: apsw.Connection, paths: Iterable[str], wanted: NoteQuery | None = None) -> list[FoundNote]:
        """Notes from their files; one that became another's meanwhile is not given."""
        found = []
        for path in paths:
            read = self.folder.read(path)
            if read is None or (wanted is not None and not _fits(read[0].scope, read[0].status, wanted)):
                continue
            row = db.execute("SELECT revision FROM last WHERE path = ?", (path,)).fetchone()
            found.append(FoundNote(read[0], str(row[0]) if row else ""))
        return found

    def _named(self, db: apsw.Connection, name: str) -> list[FoundNote]:
        self._fresh(db)
        paths = [row[0] for row in db.execute("SELECT path FROM note WHERE id = ? ORDER BY path", (name,))]
        if not paths and name:
            like = "SELECT path FROM note WHERE substr(id, 1, ?) = ? OR substr(id, 3, ?) = ? ORDER BY path LIMIT 20"
            paths = [row[0] for row in db.execute(like, (len(name), name, len(name), name))]
        return self._read(db, paths)


@contextmanager
def _writing(db: apsw.Connection) -> Iterator[None]:
    """One change, all of it or nothing; waits for other writers."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _differences(db: apsw.Connection, survey: FolderListing) -> tuple[list[str], list[str]]:
    """The files that have to be read, and those that are gone."""
    known = dict(_pairs(db, "SELECT path, stamp FROM note"))
    changed = [path for path, stamp in survey.files.items() if known.get(path) != stamp]
    return changed, [path for path in known if path not in survey.files]


def _folders(db: apsw.Connection) -> dict[str, int]:
    return {str(path): int(changed) for path, changed in db.execute("SELECT path, changed FROM folder")}


def _is_current(db: apsw.Connection, survey: FolderListing) -> bool:
    return _folders(db) == survey.folders and _differences(db, survey) == ([], [])


def _rows(db: apsw.Connection, wanted: NoteQuery) -> list[tuple[str, str]]:
    limits = NoteFilter.of(wanted)
    candidates = words(wanted.text, broad=wanted.broad)
    if not candidates:
        if wanted.broad:
            return []
        return _pairs(db, _NEWEST.format(limits=limits.sql), (*limits.bindings, wanted.limit))

    def count(word: str) -> int:
        bounded = "SELECT count(*) FROM (SELECT 1 FROM words WHERE words MATCH ? LIMIT ?)"
        return int(_value(db, bounded, (f"{{title tags body}} : {phrase(word)}", MOST_ROWS)))

    terms = chosen(candidates, count)
    if not terms:
        return []
    asked = question(terms, _facets(wanted))
    return _pairs(db, _RANKED.format(limits=limits.sql), (asked, MOST_ROWS, *limits.bindings, wanted.limit))


def _facets(wanted: NoteQuery) -> list[str]:
    if wanted.scopes is None:
        return [status_facet(status) for status in wanted.statuses]
    return [scope_facet(scope, status) for scope in wanted.scopes for status in wanted.statuses]


def _fits(scope: str, status: str, wanted: NoteQuery) -> bool:
    return status in wanted.statuses and (wanted.scopes is None or scope in wanted.scopes)


def _connected(name: str) -> apsw.Connection:
    import apsw

    db = apsw.Connection(name)
    db.set_busy_timeout(int(WAIT * 1000))
    try:
        db.pragma("journal_mode", "WAL")
        db.pragma("synchronous", "NORMAL")
        if db.pragma("user_version") != VERSION:
            with _writing(db):
                if db.pragma("user_version") != VERSION:
                    _drop(db)
                    db.execute(_SCHEMA)
    except BaseException:
        db.close(True)
        raise
    return db


def _drop(db: apsw.Connection) -> None:
    """Remove whatever tables there are: those that belong to another go with it."""
    names = [row[0] for row in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    for name in sorted(names, key=len):
        if not name.startswith("sqlite_"):
            db.execute(f'DROP TABLE IF EXISTS "{name}"')


def _learn(db: apsw.Connection, note: Note, stamp: Stamp) -> None:
    row = db.execute("SELECT number FROM note WHERE path = ?", (note.path,)).fetchone()
    number = row[0] if row else None
    if number is not None:
        db.execute("DELETE FROM words WHERE rowid = ?", (number,))
    db.execute(
        "INSERT OR REPLACE INTO note VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (number, note.path, stamp, note.id, note.scope, note.status, note.type, note.updated),
    )
    said = (note.title, " ".join((note.type, *note.tags)), note.text)
    fields = (*map(indexed, said), facets_of(note.scope, note.status))
    db.execute(
        "INSERT INTO words (rowid, title, tags, body, facet) VALUES (?, ?, ?, ?, ?)",
        (number or db.last_insert_rowid(), *fields),
    )


def _forget(db: apsw.Connection, path: str) -> None:
    row = db.execute("SELECT number FROM note WHERE path = ?", (path,)).fetchone()
    if row:
        db.execute("DELETE FROM words WHERE rowid = ?", row)
        db.execute("DELETE FROM note WHERE number = ?", row)


def _pairs(db: apsw.Connection, sql: str, bindings: tuple[Any, ...] = ()) -> list[tuple[str, str]]:
    return [(str(row[0]), str(row[1])) for row in db.execute(sql, bindings)]


def _value(db: apsw.Connection, sql: str, bindings: tuple[Any, ...] = ()) -> Any:
    row = db.execute(sql, bindings).fetchone()
    return row[0] if row else None


def _meta(db: apsw.Connection, name: str) -> str:
    return str(_value(db, "SELECT value FROM meta WHERE name = ?", (name,)) or "")


def _set_meta(db: apsw.Connection, **values: str) -> None:
    db.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", list(values.items()))


def _marks(values: tuple[str, ...]) -> str:
    return ", ".join("?" * len(values))
