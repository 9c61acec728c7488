"""The brain's verbs: ask, write, approve, put away, and choose what goes into a brief.

What an agent writes is pending, and a brief takes approved notes only: between the two stands a person.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypedDict, Unpack

from bailiwick.brain.frontmatter import NOTES, rewrite, write
from bailiwick.brain.index import Index
from bailiwick.brain.model import (
    BAD_SCOPE,
    GLOBAL,
    LIVE,
    Brief,
    FoundNote,
    Note,
    NoteQuery,
    Status,
    checked,
    conflict,
    in_conflict,
    one_line,
    printable,
    project_scope,
    seen_from,
    slug,
)
from bailiwick.brain.notes import NoteFolder, NoteWriter
from bailiwick.brain.terms import words
from bailiwick.bundled_files import BUNDLED_FILES
from bailiwick.clock import Clock, iso
from bailiwick.config.repository import find_remote
from bailiwick.config.service import Config
from bailiwick.config.variables import Environment
from bailiwick.errors import NotFound, NotReady, UsageError
from bailiwick.ids import Json, digest

OFF = "BW573"
NO_NOTE = "BW574"
NOT_SO = "BW575"
NO_WORDS = "BW576"
MOST = 100
"""Notes in one answer."""
BRIEF_TOKENS = 1500
BRIEF_NOTES = 12
CHARACTERS = 4
"""Of a token, about."""
POST_SECONDS = 5.0
PROMPTS = BUNDLED_FILES / "prompts"
_LEAST = 400
"""Characters that a cut note has to have left to be worth its place."""

FoundNotes = list[FoundNote]


def scope_of(root: Path | None) -> str:
    """The scope of a project, by its remote, else by where it lies; without one the global scope."""
    if root is None:
        return GLOBAL
    remote = find_remote(root)
    if remote is not None:
        return project_scope(f"{remote.host}/{remote.owner}/{remote.name}".lower(), remote.name)
    return project_scope(f"path {root.resolve()}", root.name)


class Details(TypedDict, total=False):
    """What may be said about a note besides its text; without `by_agent` it is an agent's."""

    title: str
    type: str
    tags: Sequence[str]
    scope: str
    source: str
    by_agent: bool


@dataclass(frozen=True, slots=True)
class Saved:
    """What a change came to. `owed` says why there is no commit yet; the next change makes it.

    `unposted` says why a new note did not reach the address that notes are also sent to.
    """

    notes: tuple[Note, ...]
    commit: str = ""
    owed: str = ""
    unposted: str = ""


@dataclass(slots=True)
class Brain:
    """The notes of a person. Queries make nothing but the index, and without a folder not even that."""

    folder: NoteFolder
    index: Index
    keeper: NoteWriter
    clock: Clock
    redact: Callable[[str], str] = printable
    ingest_url: str = ""

    @classmethod
    def open(cls, config: Config, clock: Clock, environment: Environment | None = None) -> Brain:
        """The brain that the configuration names; raises `NotReady` where the feature is off.

        Set `redact` to what covers known secrets: a note outlives the run that wrote it.
        """
        if not config.get("features.brain"):
            raise NotReady("the brain is switched off", hint="set features.brain to true", code=OFF)
        chosen = config.get("brain_dir")
        folder = NoteFolder(Path(chosen) if chosen else config.paths.state / "brain")
        file = config.paths.cache / "brain" / f"{digest(str(folder.root.resolve()))[:24]}.db"
        keeper = NoteWriter(folder, environment or Environment(), None if chosen else config.paths.make_state)
        ingest = str(config.get("brain.ingest_url") or "")
        return cls(folder, Index(file, folder, clock.now), keeper, clock, ingest_url=ingest)

    async def query(
        self, text: str, scope: str | None = GLOBAL, limit: int = 8, statuses: Sequence[Status] = LIVE
    ) -> FoundNotes:
        """Notes of a scope and the global ones, the best first; `scope` None sees all. Raises `UsageError`."""
        if not words(text, broad=False):
            shown = one_line(text, 40)
            raise UsageError(
                f"the query {shown!r} has no words to look for" if shown else "the query is empty",
                hint="give words that the note may hold; all notes: bailiwick brain list",
                code=NO_WORDS,
            )
        return await self._search(NoteQuery(text, _scopes(scope), tuple(statuses), _bounded(limit)))

    async def list(
        self, scope: str | None = GLOBAL, statuses: Sequence[Status] = LIVE, limit: int = MOST
    ) -> FoundNotes:
        """Notes of a scope and the global ones, the newest first."""
        return await self._search(NoteQuery("", _scopes(scope), tuple(statuses), max(1, limit)))

    async def get(self, name: str) -> FoundNote:
        """The one note of an id, or of its beginning; raises `NotFound`."""
        await self._learn_commits()
        found = await asyncio.to_thread(self.index.named, name) if self.folder.exists else []
        if len(found) == 1:
            return found[0]
        if not found:
            raise NotFound(f"there is no note '{one_line(name, 64)}'", hint="`bailiwick brain list`", code=NO_NOTE)
        files = ", ".join(f"{one.note.id} ({one.note.path})" for one in found[:5])
        raise NotFound(f"'{one_line(name, 64)}' means several notes", hint=files, code=NO_NOTE)

    async def scopes(self) -> tuple[str, ...]:
        """Every scope that has notes."""
        return tuple(sorted(await asyncio.to_thread(self.index.scopes))) if self.folder.exists else ()

    async def write(self, text: str, **details: Unpack[Details]) -> Note:
        """File a note: pending if it is an agent's, approved if it is a person's. Raises `UsageError`."""
        status: Status = "pending" if details.get("by_agent", True) else "approved"
        draft = Note(
            "",
            title=details.get("title", ""),
            text=text,
            type=details.get("type", "note"),
            tags=tuple(details.get("tags", ())),
            scope=details.get("scope", GLOBAL),
            source=details.get("source", ""),
            status=status,
        )
        return (await self.file(draft)).notes[0]

    async def file(self, draft: Note) -> Saved:
        """File a note under an id of its own."""
        note = checked(replace(draft, text=self.redact(draft.text), title=self.redact(draft.title)))
        now = self.clock.now()
        async with self.keeper.hold():
            name = await self._new_id()
            path = f"{NOTES}/{note.scope}/{iso(now)[:7]}/{name}-{slug(note.title)}.md"
            note = replace(note, id=name, created=now, updated=now, path=path)
            message = f"{note.status} note {name}: {one_line(note.title, 60)}\n"
            commit, owed = await self.keeper.save({path: write(note)}, message, now)
        return Saved((note,), commit, owed, await self._post(note))

    async def _post(self, note: Note) -> str:
        """Send a note where the operator says so; gives why it could not be sent, empty where it was taken."""
        if not self.ingest_url:
            return ""
        from bailiwick.agents.http import ApiRequest, CallFailed, Endpoint, calling, with_scheme
        from bailiwick.agents.port import Trouble
        from bailiwick.agents.settings import TurnTimeouts

        endpoint = Endpoint(with_scheme(self.ingest_url))
        clocks = TurnTimeouts(POST_SECONDS, POST_SECONDS)
        try:
            async with calling(ApiRequest(endpoint, endpoint.base_url, _posted(note), clocks=clocks)) as reply:
                return "" if 200 <= reply.status < 300 else f"{endpoint.host} answered with status {reply.status}"
        except CallFailed as failed:
            event = failed.event
            return one_line(event.message if isinstance(event, Trouble) else f"{endpoint.host}: {event.stderr}", 200)

    async def set_status(self, ids: Iterable[str], status: Status, by: str) -> Saved:
        """Give notes a status, all or none, in one commit; what has it already stays as it is."""
        if status == "superseded":
            raise UsageError("which note replaces it?", hint="brain supersede OLD NEW", code=NOT_SO)
        async with self.keeper.hold():
            found = [(await self.get(name)).note for name in ids]
            notes = {note.path: note for note in found if note.status != status}
            changed = [replace(note, status=status, superseded_by="") for note in notes.values()]
            return await self._changed(changed, status, f"(by {one_line(by, 60)})")

    async def supersede(self, old: str, new: str, by: str = "somebody") -> Saved:
        """Let one note stand in the place of another; both are seen from the old one's scope."""
        async with self.keeper.hold():
            before, after = (await self.get(old)).note, (await self.get(new)).note
            if before.path == after.path:
                raise UsageError("a note can't supersede itself", hint="name two notes", code=NOT_SO)
            if after.status in ("superseded", "stale"):
                raise UsageError(f"{after.id} is {after.status} itself", hint="name a note that holds", code=NOT_SO)
            if after.scope not in seen_from(before.scope):
                raise UsageError(
                    f"{after.id} belongs to another scope", hint=f"write it in {before.scope}", code=NOT_SO
                )
            gone = replace(before, status="superseded", superseded_by=after.id)
            return await self._changed([gone], gone.status, f"by {after.id} (by {one_line(by, 60)})")

    async def reindex(self) -> int:
        """Throw the index away and make it again; gives the number of notes."""
        if not self.folder.exists:
            return 0
        number = await asyncio.to_thread(self.index.rebuild)
        await self._learn_commits()
        return number

    async def brief(self, text: str, scope: str, max_tokens: int = BRIEF_TOKENS) -> Brief:
        """Approved notes about a task, and which ones they are."""
        wanted = NoteQuery(text, seen_from(scope), ("approved",), BRIEF_NOTES, broad=True)
        found = [one.note for one in await self._search(wanted)]
        pieces, notes = _fitting(found, max_tokens * CHARACTERS - len(_framed("")))
        return Brief(_framed("\n\n".join(pieces)), notes) if pieces else Brief()

    def close(self) -> None:
        """Let go of the index."""
        self.index.close()

    async def _search(self, wanted: NoteQuery) -> FoundNotes:
        if not self.folder.exists:
            return []
        await self._learn_commits()
        return await asyncio.to_thread(self.index.search, wanted)

    async def _learn_commits(self) -> None:
        """Ask git what changed which note, if anything was committed since; where git can't tell, nobody knows."""
        mark = self.folder.mark()
        if not mark:
            return
        known, head = await asyncio.to_thread(self.index.commits_known)
        if known != mark:
            with suppress(NotReady):
                await asyncio.to_thread(self.index.learn_commits, mark, await self.keeper.history(head))

    async def _new_id(self) -> str:
        while True:
            name = f"n-{secrets.token_hex(4)}"
            if not await asyncio.to_thread(self.index.named, name):
                return name

    async def _changed(self, notes: Iterable[Note], verb: str, tail: str) -> Saved:
        """Write the status of notes into their files, in one commit."""
        now = self.clock.now()
        new = tuple(replace(note, updated=now) for note in notes)
        raw = {note.path: self.folder.raw(note.path) for note in new}
        for note in new:
            if in_conflict(raw[note.path].decode("utf-8", "replace")):
                raise conflict(note.id)
        files = {note.path: rewrite(raw[note.path], note) for note in new}
        listed = ", ".join(note.id for note in new[:8]) + (f" and {len(new) - 8} more" if len(new) > 8 else "")
        commit, owed = await self.keeper.save(files, f"{verb}: {listed} {tail}\n", now) if files else ("", "")
        return Saved(new, commit, owed)


def _fitting(notes: Iterable[Note], room: int) -> tuple[list[str], tuple[Note, ...]]:
    """As many notes as fit, in order; the first that doesn't is cut where that is worth it."""
    pieces: list[str] = []
    used: list[Note] = []
    for note in notes:
        head = f"### {one_line(note.title)} ({note.id}, {iso(note.updated)[:10]})\n\n"
        piece = head + printable(note.text).strip()
        if len(piece) > room:
            if room >= len(head) + _LEAST or (not pieces and room > len(head)):
                pieces.append(piece[: room - 2].rstrip() + " …")
                used.append(note)
            break
        pieces.append(piece)
        used.append(note)
        room -= len(piece) + 2
    return pieces, tuple(used)


def _framed(text: str) -> str:
    """The notes between two lines with a mark that none of them can hold, as it is made of them all."""
    from bailiwick.lang.templates import Templates

    values = {"notes": text, "mark": digest(f"notes{chr(0)}{text}")[:24]}
    return str(Templates(PROMPTS).file("notes.md", values.__getitem__).value)


def _scopes(scope: str | None) -> tuple[str, ...] | None:
    if scope == "":
        raise UsageError("the scope is empty", hint=f"`{GLOBAL}`, or a project's", code=BAD_SCOPE)
    return None if scope is None else seen_from(scope)


def _bounded(limit: int) -> int:
    return max(1, min(limit, MOST))


def _posted(note: Note) -> dict[str, Json]:
    said: dict[str, Json] = {name: getattr(note, name) for name in ("id", "title", "text", "type", "scope", "source")}
    return {**said, "tags": list(note.tags), "status": note.status, "created": iso(note.created)}
