"""Proposals on disk: whole or not at all, private, and never two writers at once."""

from __future__ import annotations

import asyncio
import json
import stat
from pathlib import Path

import pytest

from bailiwick.errors import NotFound, NotReady
from bailiwick.proposals.store import ProposalStore, replace_file
from tests.unit.proposals.stage import run
from tests.unit.proposals.test_document import make_proposal


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
