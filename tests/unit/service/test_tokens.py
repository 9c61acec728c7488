"""Tokens: made once, kept closed, compared as digests, gone when removed, whatever becomes of their files."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from bailiwick.clock import ManualClock
from bailiwick.errors import NotFound, NotReady, UsageError
from bailiwick.ids import Json, digest
from bailiwick.journal.documents import change_document
from bailiwick.journal.opening import opened_store
from bailiwick.journal.port import Store
from bailiwick.journal.rows import Document
from bailiwick.service.tokens import KIND, ApiTokens, TokenAccess


def play(state: Path, scene: Callable[[ApiTokens, ApiTokens], Awaitable[None]]) -> None:
    """Play a scene with the tokens of one state directory, as two processes have them."""
    state.mkdir(exist_ok=True)

    async def played() -> None:
        async with opened_store(state, ManualClock()) as first, opened_store(state, ManualClock()) as second:
            await scene(ApiTokens(first, state), ApiTokens(second, state))

    asyncio.run(played())


def old_file(state: Path, name: str = "ci", scope: str = "run", text: str = "an old token") -> Path:
    """A token as an earlier version kept it."""
    (state / "tokens").mkdir(exist_ok=True)
    file = state / "tokens" / f"{name}.json"
    file.write_text(json.dumps({"name": name, "scope": scope, "digest": digest(text)}))
    return file


def test_the_operator_s_token_is_made_once_and_only_they_can_read_it(tmp_path: Path) -> None:
    """A client that was set up yesterday has to work today, and nobody else's."""

    async def scene(one: ApiTokens, other: ApiTokens) -> None:
        first = one.own()
        assert other.own() == first
        assert len(first) > 40
        assert (tmp_path / "state" / "token").stat().st_mode & 0o777 == 0o600

    play(tmp_path / "state", scene)


def test_a_token_file_that_others_could_read_is_closed(tmp_path: Path) -> None:
    """A copy from a backup comes back with any mode."""

    async def scene(tokens: ApiTokens, _other: ApiTokens) -> None:
        tokens.own()
        tokens.file.chmod(0o644)
        tokens.own()
        assert tokens.file.stat().st_mode & 0o777 == 0o600

    play(tmp_path, scene)


def test_the_operator_s_token_reaches_everything_and_is_a_file_of_this_machine(tmp_path: Path) -> None:
    """It is the way in from which the others are made; with the file it is gone."""

    async def scene(tokens: ApiTokens, _other: ApiTokens) -> None:
        own = tokens.own()
        assert await tokens.find(own) == TokenAccess("operator", "admin")
        assert await tokens.store.documents(KIND) == []
        tokens.file.unlink()
        assert await tokens.find(own) is None

    play(tmp_path, scene)


def test_of_a_further_token_only_the_digest_is_kept(tmp_path: Path) -> None:
    """Who reads the state directory must not be able to use what they find."""

    async def scene(tokens: ApiTokens, other: ApiTokens) -> None:
        made = await tokens.add("ci", "run")
        kept = (tmp_path / "tokens" / "ci.json").read_text()
        (document,) = await tokens.store.documents(KIND)
        assert json.loads(kept) == document.body
        assert made not in kept
        assert set(json.loads(kept)) == {"name", "scope", "digest"}
        assert await other.find(made) == TokenAccess("ci", "run")
        assert await other.all() == [TokenAccess("ci", "run")]

    play(tmp_path, scene)


def test_a_removed_token_counts_no_more(tmp_path: Path) -> None:
    """A leaked token has to be stopped without a restart, by this process or another."""

    async def scene(tokens: ApiTokens, other: ApiTokens) -> None:
        made = await tokens.add("ci", "run")
        assert await tokens.find(made) is not None
        await other.remove("ci")
        assert await tokens.find(made) is None
        assert not (tmp_path / "tokens" / "ci.json").exists()
        again = await tokens.add("ci", "read")
        assert (await tokens.find(made), await tokens.find(again)) == (None, TokenAccess("ci", "read"))
        await tokens.remove("ci")
        assert (await tokens.find(again), await other.find(again)) == (None, None)

    play(tmp_path, scene)


def test_tokens_are_read_only_when_the_store_has_news(tmp_path: Path) -> None:
    """They are looked up for every request."""

    async def scene(tokens: ApiTokens, other: ApiTokens) -> None:
        made = await tokens.add("ci", "run")
        await tokens.find(made)
        reads = list[str]()
        counting: Any = Counting(tokens.store, reads)
        tokens.store = counting
        for _ in range(100):
            assert await tokens.find(made) == TokenAccess("ci", "run")
        assert reads == []
        await other.add("editor", "read")
        await tokens.find(made)
        await tokens.find(made)
        assert reads == [KIND]

    class Counting:
        """Notes which kinds are listed."""

        def __init__(self, store: Store, reads: list[str]) -> None:
            self.document, self.wait_for_news = store.document, store.wait_for_news
            self.list, self.reads = store.documents, reads

        async def documents(self, kind: str) -> list[Document]:
            self.reads.append(kind)
            return await self.list(kind)

    play(tmp_path, scene)


@pytest.mark.parametrize("text", ["", "nope", "x" * 10_000, "bw_\udcff", "null"])
def test_what_is_no_token_is_nobody_s(tmp_path: Path, text: str) -> None:
    """Whatever stands in the header, the answer is no, not a crash."""

    async def scene(tokens: ApiTokens, _other: ApiTokens) -> None:
        tokens.own()
        assert await tokens.find(text) is None

    play(tmp_path, scene)


def test_a_name_is_used_once_and_stays_in_its_folder(tmp_path: Path) -> None:
    """A second token of a name would replace one that somebody uses."""

    async def scene(tokens: ApiTokens, other: ApiTokens) -> None:
        await tokens.add("ci", "read")
        with pytest.raises(UsageError, match="already"):
            await other.add("ci", "admin")
        with pytest.raises(UsageError, match="not a name"):
            await tokens.add("../token", "admin")
        for name in ("../token", "nobody"):
            with pytest.raises(NotFound):
                await tokens.remove(name)

    play(tmp_path, scene)


def test_of_two_who_take_a_name_at_once_one_gets_it(tmp_path: Path) -> None:
    """And tokens of other names are not lost."""

    async def scene(tokens: ApiTokens, other: ApiTokens) -> None:
        asked = (tokens.add("ci", "read"), other.add("ci", "admin"), tokens.add("a", "run"), other.add("b", "run"))
        made = await asyncio.gather(*asked, return_exceptions=True)
        assert sorted(type(one).__name__ for one in made) == ["UsageError", "str", "str", "str"]
        for text in made:
            assert isinstance(text, UsageError) or await tokens.find(str(text)) is not None
        assert [one.name for one in await other.all()] == ["a", "b", "ci"]

    play(tmp_path, scene)


def test_a_broken_token_file_of_an_earlier_version_is_told_with_its_place(tmp_path: Path) -> None:
    """To serve on without a token that somebody relies on would look like an attack to them."""
    file = old_file(tmp_path, scope="god")

    async def scene(tokens: ApiTokens, _other: ApiTokens) -> None:
        with pytest.raises(NotReady, match="not a scope") as caught:
            await tokens.all()
        assert str(caught.value.place) == str(file)

    play(tmp_path, scene)


def test_tokens_of_an_earlier_version_open_the_door_and_their_files_do_not_any_more(tmp_path: Path) -> None:
    """Whoever can write a file could otherwise let themselves in, or bring a revoked token back."""
    file = old_file(tmp_path)

    async def scene(tokens: ApiTokens, other: ApiTokens) -> None:
        assert await tokens.find("an old token") == TokenAccess("ci", "run")
        old_file(tmp_path, scope="admin")
        old_file(tmp_path, "mine", "admin", "a token of my own")
        assert await other.find("an old token") == TokenAccess("ci", "run")
        assert await other.find("a token of my own") is None
        assert json.loads(file.read_text())["scope"] == "run"
        file.unlink()
        assert [one.name for one in await tokens.all()] == ["ci"]
        await tokens.remove("ci")
        old_file(tmp_path)
        assert (await tokens.find("an old token"), await other.find("an old token")) == (None, None)

    play(tmp_path, scene)


def test_the_files_show_what_a_killed_process_committed(tmp_path: Path) -> None:
    """One token removed, one made, neither file written or removed yet."""

    async def scene(tokens: ApiTokens, other: ApiTokens) -> None:
        await tokens.add("ci", "run")
        made: Json = {"name": "new", "scope": "read", "digest": digest("text")}
        await change_document(tokens.store, KIND, "ci", lambda _: None)
        await change_document(tokens.store, KIND, "new", lambda _: made)
        assert [path.name for path in (tmp_path / "tokens").iterdir()] == ["ci.json"]
        assert await other.all() == [TokenAccess("new", "read")]
        assert [path.name for path in (tmp_path / "tokens").iterdir()] == ["new.json"]

    play(tmp_path, scene)


def test_scopes_contain_one_another() -> None:
    """An admin who could not read would need three tokens."""
    assert TokenAccess("a", "admin").reaches("run")
    assert TokenAccess("a", "run").reaches("read")
    assert not TokenAccess("a", "read").reaches("run")
    assert not TokenAccess("a", "run").reaches("admin")
