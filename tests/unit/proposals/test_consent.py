"""Consents: what a word covers, that it is audited first, and that nobody's word is lost or made up by a file."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pytest

from bailiwick.clock import ManualClock
from bailiwick.errors import NotFound, NotReady
from bailiwick.ids import Json
from bailiwick.journal.documents import change_document
from bailiwick.journal.opening import open_store
from bailiwick.proposals.consent import DRAFTS, EXPIRES, KIND, READY, Consent, Consents, decide, scope_of
from tests.unit.proposals.stage import run

SHOP = "git.example.org/acme/shop"
TILL = "git.example.org/acme/till"


def _no_audit(_kind: str, _data: dict[str, Json]) -> None:
    """Nothing to record with."""


class Twice:
    """The consents of one state directory, as two processes have them."""

    def __init__(self, state: Path) -> None:
        self.clock = ManualClock()
        self.file = state / "consents.json"
        self.stores = [run(open_store(state, self.clock)) for _ in range(2)]
        self.one, self.other = (Consents(store, state, self.clock) for store in self.stores)

    def give(self, repository: str = SHOP, scope: str = DRAFTS) -> Consent:
        """Somebody consents."""
        return run(self.one.give(repository, "ours", scope, by="pat", audit=_no_audit))

    def find(self, repository: str, forge: str, scope: str) -> Consent | None:
        """What the other process finds."""
        return run(self.other.find(repository, forge, scope))


@pytest.fixture
def twice(tmp_path: Path) -> Iterator[Twice]:
    """Two processes."""
    made = Twice(tmp_path)
    yield made
    for store in made.stores:
        run(store.close())


def test_a_consent_holds_for_its_repository_forge_scope_and_time(twice: Twice) -> None:
    """A word for drafts at one place is no word for anything else."""
    twice.give()
    assert twice.find(SHOP, "ours", DRAFTS) is not None
    assert twice.find(SHOP, "ours", READY) is None
    assert twice.find(SHOP, "other", DRAFTS) is None
    assert twice.find("git.example.org/acme/bank", "ours", DRAFTS) is None
    twice.clock.advance(EXPIRES)
    assert twice.find(SHOP, "ours", DRAFTS) is None


def test_a_consent_for_more_covers_less_and_a_new_one_replaces_the_old(twice: Twice) -> None:
    """One entry per repository and forge."""
    twice.give()
    twice.give(scope=READY)
    assert twice.find(SHOP, "ours", DRAFTS) is not None
    assert [one.scope for one in run(twice.other.all())] == [READY]


def test_a_consent_can_be_revoked_once(twice: Twice) -> None:
    """The audit has it with all that was given; other repositories keep theirs."""
    entries = list[tuple[str, Json]]()
    given, other = twice.give(), twice.give(TILL)
    assert run(twice.other.revoke(SHOP, lambda kind, data: entries.append((kind, data)))) == [given]
    assert entries == [("consent.withdrawn", asdict(given))]
    with pytest.raises(NotFound, match="was revoked before"):
        run(twice.one.revoke(SHOP, _no_audit))
    assert run(twice.one.all()) == [other]


def test_a_consent_that_can_not_be_audited_is_neither_given_nor_revoked(twice: Twice) -> None:
    """The audit comes first."""

    def full(_kind: str, _data: dict[str, Json]) -> None:
        raise NotReady("the audit can't be written")

    given = twice.give(TILL)
    with pytest.raises(NotReady):
        run(twice.one.give(SHOP, "ours", DRAFTS, by="pat", audit=full))
    with pytest.raises(NotReady):
        run(twice.one.revoke(TILL, full))
    assert run(twice.one.all()) == [given]


def test_two_who_consent_at_once_are_both_heard_and_a_revocation_is_audited_once(twice: Twice) -> None:
    """Neither word is lost, whoever writes first."""
    entries = list[str]()
    twice.give()

    async def at_once() -> None:
        await asyncio.gather(
            twice.one.give(TILL, "ours", DRAFTS, by="pat", audit=_no_audit),
            twice.other.revoke(SHOP, lambda kind, _data: entries.append(kind)),
            twice.other.give("git.example.org/acme/bank", "ours", DRAFTS, by="kim", audit=_no_audit),
        )

    run(at_once())
    assert sorted((one.repository, one.by) for one in run(twice.one.all())) == [
        ("git.example.org/acme/bank", "kim"),
        (TILL, "pat"),
    ]
    assert entries == ["consent.withdrawn"]


def test_consents_of_an_earlier_version_hold_and_their_file_is_a_copy_from_then_on(twice: Twice) -> None:
    """Whoever edits or removes the file neither gives nor takes a consent."""
    old = Consent(SHOP, "ours", DRAFTS, by="pat", at=1.0, expires=twice.clock.now() + 60)
    twice.file.write_text(json.dumps({"version": 1, "consents": [asdict(old)]}))
    assert run(twice.one.all()) == [old]
    twice.file.write_text(json.dumps({"version": 1, "consents": [asdict(old), {**asdict(old), "repository": TILL}]}))
    assert twice.find(TILL, "ours", DRAFTS) is None
    assert json.loads(twice.file.read_text())["consents"] == [asdict(old)]
    twice.file.unlink()
    assert twice.find(SHOP, "ours", DRAFTS) == old
    run(twice.one.revoke(SHOP, _no_audit))
    twice.file.write_text(json.dumps({"version": 1, "consents": [asdict(old)]}))
    assert run(twice.other.all()) == []


def test_the_file_shows_what_a_killed_process_committed(twice: Twice) -> None:
    """A consent that a person can't see in the file is seen after the next look."""
    twice.give()
    run(change_document(twice.stores[0], KIND, KIND, lambda known: {**known, "consents": []}))
    assert len(json.loads(twice.file.read_text())["consents"]) == 1
    assert run(twice.other.all()) == []
    assert json.loads(twice.file.read_text())["consents"] == []


@pytest.mark.parametrize("text", ['{"consents": [{"by": "me"}]}', "{", "[]", "null"])
def test_a_broken_consents_file_is_no_consent(twice: Twice, text: str) -> None:
    """It is an error with its place, not a yes; removed, the person is asked again."""
    twice.file.write_text(text)
    with pytest.raises(NotReady) as refused:
        twice.find(SHOP, "ours", DRAFTS)
    assert str(refused.value.place) == str(twice.file)
    twice.file.unlink()
    assert twice.find(SHOP, "ours", DRAFTS) is None


def test_the_configuration_and_a_consent_decide() -> None:
    """Never beats a consent, auto needs none, ask needs one."""
    assert [decide("never", None), decide("auto", None), decide("ask", None)] == ["keep", "publish", "ask"]
    assert [scope_of(draft=True), scope_of(draft=False)] == [DRAFTS, READY]
