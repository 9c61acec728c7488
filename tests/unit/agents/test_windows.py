"""What vendors said of their windows: a note that stops nothing, kept in the store, shown as a file."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from bailiwick.agents.broker.windows import KIND, VendorLimits, Window
from bailiwick.agents.port import LimitSeen
from bailiwick.clock import ManualClock
from bailiwick.errors import StoreUnavailable
from bailiwick.journal.documents import change_document
from bailiwick.journal.opening import opened_store
from bailiwick.journal.rows import Document

WEEK = Window("c", "week", used=0.5, resets_at=2.0, hit=False, seen_at=1.0)


def play(state: Path, scene: Callable[[VendorLimits, VendorLimits], Awaitable[None]]) -> None:
    """Play a scene with the limits of one state directory, as two processes have them."""

    async def played() -> None:
        async with opened_store(state, ManualClock()) as first, opened_store(state, ManualClock()) as second:
            await scene(VendorLimits(first, state), VendorLimits(second, state))

    asyncio.run(played())


async def see(limits: VendorLimits, window: str = "week", used: float = 0.5, credential: str = "c") -> None:
    """A vendor says something of a window."""
    await limits.remember(credential, [LimitSeen(False, window, used, 2.0)], 1.0)


def entry(**more: object) -> dict[str, object]:
    """A window as a file has it."""
    return {"credential": "c", "window": "week", "used": 0.5, "resets_at": 2.0, "hit": False, "seen_at": 1.0, **more}


def test_a_limit_is_kept_privately_and_shown_as_a_file(tmp_path: Path) -> None:
    """It is for people, of this account only."""

    async def scene(limits: VendorLimits, other: VendorLimits) -> None:
        await see(limits)
        assert await other.all() == [WEEK]
        file = tmp_path / "limits.json"
        assert json.loads(file.read_text()) == {"c": {"week": entry()}}
        assert file.stat().st_mode & 0o777 == 0o600

    play(tmp_path, scene)


@pytest.mark.parametrize("said", [("", 0.5), ("week", float("nan")), ("week", float("inf")), ("week", -1.0)])
def test_what_makes_no_sense_is_not_kept(tmp_path: Path, said: tuple[str, float]) -> None:
    """Vendors say strange things; nothing may fail because of it."""

    async def scene(limits: VendorLimits, _other: VendorLimits) -> None:
        await see(limits, *said)
        assert await limits.documents.store.document(KIND, KIND) is None

    play(tmp_path, scene)


def test_a_store_that_can_not_be_written_stops_no_turn(tmp_path: Path) -> None:
    """The note is lost; the turn that brought it is not."""

    async def full(*_: object) -> Document:
        raise StoreUnavailable("the disk is full")

    async def scene(limits: VendorLimits, other: VendorLimits) -> None:
        await see(other)
        store: Any = limits.documents.store
        store.put_document = full
        await see(limits, "day")
        assert await other.all() == [WEEK]

    play(tmp_path, scene)


@pytest.mark.parametrize("text", ["{", "5", json.dumps({"c": {"week": {"used": "x"}}, "d": 5}), "[" * 100_000])
def test_a_broken_file_of_an_earlier_version_is_as_good_as_none(tmp_path: Path, text: str) -> None:
    """It is a note for people."""
    (tmp_path / "limits.json").write_text(text)

    async def scene(limits: VendorLimits, _other: VendorLimits) -> None:
        assert await limits.all() == []
        await see(limits)
        assert await limits.all() == [WEEK]

    play(tmp_path, scene)


def test_limits_of_an_earlier_version_are_known_and_their_file_is_a_copy_from_then_on(tmp_path: Path) -> None:
    """Whoever edits or removes it changes nothing."""
    file = tmp_path / "limits.json"
    file.write_text(json.dumps({"c": {"week": entry(), "day": {"used": "x"}}}))

    async def scene(limits: VendorLimits, other: VendorLimits) -> None:
        assert await limits.all() == [WEEK]
        file.write_text(json.dumps({"c": {"week": entry(used=0.0)}}))
        assert await other.all() == [WEEK]
        assert json.loads(file.read_text()) == {"c": {"week": entry()}}
        file.unlink()
        assert await other.all() == [WEEK]

    play(tmp_path, scene)


def test_what_two_processes_saw_at_once_is_all_kept(tmp_path: Path) -> None:
    """Of one credential and of several."""

    async def scene(limits: VendorLimits, other: VendorLimits) -> None:
        await asyncio.gather(
            *(see(limits, f"a{number}") for number in range(5)),
            *(see(other, f"b{number}", credential="d") for number in range(5)),
            *(see(other, f"c{number}") for number in range(5)),
        )
        names = [f"{letter}{number}" for letter in "acb" for number in range(5)]
        assert [window.window for window in await limits.all()] == names
        assert sum(map(len, json.loads((tmp_path / "limits.json").read_text()).values())) == len(names)

    play(tmp_path, scene)


def test_the_file_shows_what_a_killed_process_committed(tmp_path: Path) -> None:
    """After the next look."""

    async def scene(limits: VendorLimits, other: VendorLimits) -> None:
        await see(limits)
        await change_document(limits.documents.store, KIND, KIND, lambda _: {"c": {"week": entry(used=0.75)}})
        assert [window.used for window in await other.all()] == [0.75]
        assert json.loads((tmp_path / "limits.json").read_text()) == {"c": {"week": entry(used=0.75)}}

    play(tmp_path, scene)


def test_what_was_seen_is_bounded(tmp_path: Path) -> None:
    """A vendor that makes up windows, or names, must not fill a disk: those seen last are kept."""

    async def scene(limits: VendorLimits, _other: VendorLimits) -> None:
        for number in range(70):
            await limits.remember("c", [LimitSeen(False, f"w{number}", 0.5)], float(number))
        kept = [window.window for window in await limits.all()]
        assert len(kept) == 64
        assert "w69" in kept
        assert "w1" not in kept
        for number in range(70):
            await limits.remember(f"name{number}", [LimitSeen(False, "w", 0.5)], 100.0 + number)
        names = {window.credential for window in await limits.all()}
        assert (len(names), "c" in names, "name69" in names, "name5" in names) == (64, False, True, False)

    play(tmp_path, scene)
