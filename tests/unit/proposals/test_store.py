"""Proposals: kept in the store, shown as private files, changed by several and pushed by one at a time."""

from __future__ import annotations

import asyncio
import json
import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bailiwick.clock import ManualClock
from bailiwick.errors import NotFound, NotReady
from bailiwick.journal.documents import change_document
from bailiwick.journal.opening import open_store
from bailiwick.proposals.model import Proposal
from bailiwick.proposals.store import KIND, ProposalStore
from tests.unit.proposals.stage import run
from tests.unit.proposals.test_document import make_proposal

ID = "abc1234567"


class ProposalsTwice:
    """The proposals of one state directory, as two processes have them."""

    def __init__(self, state: Path) -> None:
        self.stores = [run(open_store(state, ManualClock())) for _ in range(2)]
        self.one, self.other = (ProposalStore(store, state) for store in self.stores)
        self.file = state / "proposals" / f"{ID}.json"

    def save(self, proposal: Proposal) -> Proposal:
        """Somebody makes a proposal."""
        return run(self.one.change(proposal.id, lambda _: proposal, new=proposal))

    def old(self, proposal: Proposal) -> None:
        """An earlier version made it."""
        self.file.parent.mkdir(exist_ok=True)
        self.file.with_name(f"{proposal.id}.json").write_text(json.dumps(proposal.to_json()))

    def shown(self) -> Proposal | None:
        """What the other process has."""
        return run(self.other.get(ID))


@pytest.fixture
def twice(tmp_path: Path) -> Iterator[ProposalsTwice]:
    """Two processes."""
    made = ProposalsTwice(tmp_path)
    yield made
    for store in made.stores:
        run(store.close())


def test_a_proposal_is_kept_privately_and_found_by_what_people_type(twice: ProposalsTwice) -> None:
    """By id, its beginning, its run or its branch."""
    made = twice.save(make_proposal(id=ID))
    twice.save(make_proposal(id="abd7654321", run="run-2", branch="agent/y-2", created=2.0))
    assert [one.id for one in run(twice.other.all())] == ["abd7654321", ID]
    assert [run(twice.other.named(text)) for text in ("abc", "run-1", "agent/x-1", ID)] == [made] * 4
    twice.save(make_proposal(id="abc9999999", run="run-3", branch="agent/z-3"))
    with pytest.raises(NotFound, match="several"):
        run(twice.one.named("abc"))
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (twice.file, twice.file.parent)]
    assert (modes, json.loads(twice.file.read_text())) == ([0o600, 0o700], made.to_json())


@pytest.mark.parametrize("text", ["", "{", "[]", '{"version": 1}', '{"version": 9}'])
def test_a_broken_file_of_an_earlier_version_is_an_error_with_its_place(twice: ProposalsTwice, text: str) -> None:
    """It is not taken for no proposal: then a second one would be made."""
    twice.old(make_proposal(id="abd7654321"))
    twice.file.write_text(text)
    for asked in (twice.one.get(ID), twice.other.all(), twice.one.change(ID, lambda now: now, new=make_proposal())):
        with pytest.raises(NotReady) as refused:
            run(asked)
        assert str(refused.value.place) == str(twice.file)
    twice.file.unlink()
    assert [one.id for one in run(twice.other.all())] == ["abd7654321"]


def test_a_proposal_of_a_newer_version_is_an_error_too(twice: ProposalsTwice) -> None:
    """It is left as it is."""
    newer = {"version": 9}
    run(change_document(twice.stores[0], KIND, ID, lambda _: newer))
    for asked in (twice.one.get(ID), twice.one.all(), twice.one.change(ID, lambda now: now)):
        with pytest.raises(NotReady, match="not a proposal of version 1"):
            run(asked)
    assert json.loads(twice.file.read_text()) == newer


@pytest.mark.parametrize("name", ["", "..", "../../x", "ABC", "abc/def", "a" * 65])
def test_no_name_leaves_the_folder(twice: ProposalsTwice, name: str) -> None:
    """Ids come from command lines and workflows."""
    with pytest.raises(NotFound):
        run(twice.one.get(name))
    with pytest.raises(NotFound):
        run(twice.one.change(name, lambda now: now, new=make_proposal()))
    with pytest.raises(NotFound):
        twice.one.held(name)


def test_what_is_not_there_can_not_be_changed(twice: ProposalsTwice) -> None:
    """Nothing is made of it."""
    with pytest.raises(NotFound):
        run(twice.one.change(ID, lambda now: now))
    assert run(twice.other.all()) == []


def test_proposals_of_an_earlier_version_are_there_and_their_files_are_copies_from_then_on(
    twice: ProposalsTwice,
) -> None:
    """Whoever edits, removes or adds a file changes no proposal."""
    made = make_proposal(id=ID)
    twice.old(made)
    assert run(twice.one.all()) == [made]
    twice.old(replace(made, status="published"))
    twice.old(make_proposal(id="abd7654321"))
    assert twice.shown() == made
    assert json.loads(twice.file.read_text()) == made.to_json()
    twice.file.unlink()
    assert run(twice.other.all()) == [made]
    assert json.loads(twice.file.read_text()) == made.to_json()


def test_the_file_shows_what_a_killed_process_committed(twice: ProposalsTwice) -> None:
    """After the next look."""
    twice.save(make_proposal(id=ID))
    run(change_document(twice.stores[0], KIND, ID, lambda known: {**known, "status": "merged"}))
    found = twice.shown()
    assert found is not None
    assert (found.status, json.loads(twice.file.read_text())["status"]) == ("merged", "merged")


def test_what_two_processes_change_at_once_all_counts(twice: ProposalsTwice) -> None:
    """Each says what is different, on what the other left."""
    made = make_proposal(id=ID, pushed=(), people=())

    async def push(store: ProposalStore, number: int) -> None:
        await store.change(ID, lambda now: replace(now, pushed=(*now.pushed, f"c{number}")), new=made)

    async def at_once() -> None:
        await asyncio.gather(*(push(store, number) for number, store in enumerate((twice.one, twice.other) * 5)))

    twice.save(made)
    run(at_once())
    found = twice.shown()
    assert found is not None
    assert sorted(found.pushed) == [f"c{number}" for number in range(10)]
    assert json.loads(twice.file.read_text()) == found.to_json()


def test_one_proposal_is_pushed_by_one_at_a_time(twice: ProposalsTwice) -> None:
    """The second waits for the first, and may change the proposal while it holds it."""
    twice.save(make_proposal(id=ID, rounds=0))
    order: list[str] = []

    async def push(store: ProposalStore, name: str) -> None:
        async with store.held(ID):
            order.append(f"{name} in")
            await store.change(ID, lambda now: replace(now, rounds=now.rounds + 1))
            order.append(f"{name} out")

    async def both() -> None:
        await asyncio.gather(push(twice.one, "a"), push(twice.other, "b"))

    run(both())
    assert order in (["a in", "a out", "b in", "b out"], ["b in", "b out", "a in", "a out"])
    found = twice.shown()
    assert found is not None
    assert found.rounds == 2
