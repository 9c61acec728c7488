"""Proposals and consents on disk: whole or not at all, private, and never two writers at once."""

from __future__ import annotations

import asyncio
import json
import stat
from dataclasses import asdict
from pathlib import Path

import pytest

from bailiwick.clock import ManualClock
from bailiwick.errors import NotFound, NotReady
from bailiwick.ids import Json
from bailiwick.proposals.consent import DRAFTS, EXPIRES, READY, Consents, decide, scope_of
from bailiwick.proposals.store import ProposalStore, replace_file
from tests.unit.proposals.stage import run
from tests.unit.proposals.test_document import make_proposal

SHOP = "git.example.org/acme/shop"


def _no_audit(_kind: str, _data: dict[str, Json]) -> None:
    """Nothing to record with."""


def test_a_proposal_is_kept_privately_and_found_by_what_people_type(tmp_path: Path) -> None:
    """By id, its beginning, its run or its branch."""
    store = ProposalStore(tmp_path)
    made = store.save(make_proposal(id="abc1234567"))
    store.save(make_proposal(id="abd7654321", run="run-2", branch="agent/y-2", created=2.0))
    assert [one.id for one in store.all()] == ["abd7654321", "abc1234567"]
    assert [store.named(text) for text in ("abc", "run-1", "agent/x-1", "abc1234567")] == [made] * 4
    store.save(make_proposal(id="abc9999999", run="run-3", branch="agent/z-3"))
    with pytest.raises(NotFound, match="several"):
        store.named("abc")
    file = tmp_path / "proposals" / "abc1234567.json"
    assert (stat.S_IMODE(file.stat().st_mode), stat.S_IMODE(file.parent.stat().st_mode)) == (0o600, 0o700)


def test_a_broken_file_is_an_error_with_its_place(tmp_path: Path) -> None:
    """It is not taken for no proposal: then a second one would be made."""
    store = ProposalStore(tmp_path)
    store.save(make_proposal(id="abc1234567"))
    file = tmp_path / "proposals" / "abc1234567.json"
    for text in ("", "{", "[]", '{"version": 1}', '{"version": 9}'):
        file.write_text(text)
        with pytest.raises(NotReady) as refused:
            store.get("abc1234567")
        assert str(refused.value.place) == str(file)


@pytest.mark.parametrize("name", ["", "..", "../../x", "ABC", "abc/def", "a" * 65])
def test_no_name_leaves_the_folder(tmp_path: Path, name: str) -> None:
    """Ids come from command lines and workflows."""
    with pytest.raises(NotFound):
        ProposalStore(tmp_path).get(name)


def test_a_file_is_replaced_whole_or_left_as_it_was(tmp_path: Path) -> None:
    """A full disk or a crash half way leaves the old one, and no litter."""
    file = tmp_path / "a.json"
    replace_file(file, {"x": 1})
    with pytest.raises(TypeError):
        replace_file(file, {"x": object()})
    assert json.loads(file.read_text()) == {"x": 1}
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


def test_one_proposal_is_changed_by_one_at_a_time(tmp_path: Path) -> None:
    """The second waits for the first; neither change is lost."""
    store = ProposalStore(tmp_path)
    store.save(make_proposal(id="abc1234567", rounds=0))
    order: list[str] = []

    async def change(name: str) -> None:
        async with store.held("abc1234567"):
            order.append(f"{name} in")
            await asyncio.sleep(0)
            order.append(f"{name} out")

    async def both() -> None:
        await asyncio.gather(change("a"), change("b"))

    run(both())
    assert order in (["a in", "a out", "b in", "b out"], ["b in", "b out", "a in", "a out"])


def test_a_consent_holds_for_its_repository_forge_scope_and_time(tmp_path: Path) -> None:
    """A word for drafts at one place is no word for anything else."""
    clock = ManualClock()
    consents = Consents(tmp_path, clock)
    run(consents.give(SHOP, "ours", DRAFTS, "pat", _no_audit))
    assert consents.find(SHOP, "ours", DRAFTS) is not None
    assert consents.find(SHOP, "ours", READY) is None
    assert consents.find(SHOP, "other", DRAFTS) is None
    assert consents.find("git.example.org/acme/bank", "ours", DRAFTS) is None
    clock.advance(EXPIRES)
    assert consents.find(SHOP, "ours", DRAFTS) is None


def test_a_consent_for_more_covers_less_and_a_new_one_replaces_the_old(tmp_path: Path) -> None:
    """One entry per repository and forge."""
    consents = Consents(tmp_path, ManualClock())
    run(consents.give(SHOP, "ours", DRAFTS, "pat", _no_audit))
    run(consents.give(SHOP, "ours", READY, "pat", _no_audit))
    assert consents.find(SHOP, "ours", DRAFTS) is not None
    assert [one.scope for one in consents.all()] == [READY]


def test_a_consent_can_be_revoked_once(tmp_path: Path) -> None:
    """The audit has it with all that was given; other repositories keep theirs."""
    consents, entries = Consents(tmp_path, ManualClock()), list[tuple[str, Json]]()
    given = run(consents.give(SHOP, "ours", DRAFTS, "pat", _no_audit))
    other = run(consents.give("forge.example/acme/till", "ours", DRAFTS, "pat", _no_audit))
    assert run(consents.revoke(SHOP, lambda kind, data: entries.append((kind, data)))) == [given]
    assert entries == [("consent.withdrawn", asdict(given))]
    with pytest.raises(NotFound, match="was revoked before"):
        run(consents.revoke(SHOP, _no_audit))
    assert consents.all() == [other]


def test_a_consent_that_can_not_be_audited_is_not_given(tmp_path: Path) -> None:
    """The audit comes first."""

    def full(_kind: str, _data: dict[str, Json]) -> None:
        raise NotReady("the audit can't be written")

    consents = Consents(tmp_path, ManualClock())
    with pytest.raises(NotReady):
        run(consents.give(SHOP, "ours", DRAFTS, "pat", full))
    assert consents.all() == []


def test_a_broken_consents_file_is_no_consent(tmp_path: Path) -> None:
    """It is an error, not a yes."""
    (tmp_path / "consents.json").write_text('{"consents": [{"by": "me"}]}')
    with pytest.raises(NotReady):
        Consents(tmp_path, ManualClock()).find(SHOP, "ours", DRAFTS)


def test_the_configuration_and_a_consent_decide() -> None:
    """Never beats a consent, auto needs none, ask needs one."""
    assert [decide("never", None), decide("auto", None), decide("ask", None)] == ["keep", "publish", "ask"]
    assert [scope_of(draft=True), scope_of(draft=False)] == [DRAFTS, READY]
