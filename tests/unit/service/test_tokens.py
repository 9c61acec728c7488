"""Tokens: made once, kept closed, compared as digests, gone when removed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bailiwick.errors import NotFound, NotReady, UsageError
from bailiwick.service.tokens import ApiTokens, TokenAccess


def test_the_operator_s_token_is_made_once_and_only_they_can_read_it(tmp_path: Path) -> None:
    """A client that was set up yesterday has to work today, and nobody else's."""
    first = ApiTokens(tmp_path / "state").own()
    assert ApiTokens(tmp_path / "state").own() == first
    assert len(first) > 40
    assert (tmp_path / "state" / "token").stat().st_mode & 0o777 == 0o600


def test_a_token_file_that_others_could_read_is_closed(tmp_path: Path) -> None:
    """A copy from a backup comes back with any mode."""
    tokens = ApiTokens(tmp_path)
    tokens.own()
    tokens.file.chmod(0o644)
    tokens.own()
    assert tokens.file.stat().st_mode & 0o777 == 0o600


def test_the_operator_s_token_reaches_everything(tmp_path: Path) -> None:
    """It is the way in from which the others are made."""
    tokens = ApiTokens(tmp_path)
    assert tokens.find(tokens.own()) == TokenAccess("operator", "admin")


def test_of_a_further_token_only_the_digest_is_kept(tmp_path: Path) -> None:
    """Who reads the state directory must not be able to use what they find."""
    tokens = ApiTokens(tmp_path)
    made = tokens.add("ci", "run")
    kept = (tmp_path / "tokens" / "ci.json").read_text()
    assert made not in kept
    assert set(json.loads(kept)) == {"name", "scope", "digest"}
    assert tokens.find(made) == TokenAccess("ci", "run")
    assert tokens.all() == [TokenAccess("ci", "run")]


def test_a_removed_token_counts_no_more(tmp_path: Path) -> None:
    """A leaked token has to be stopped without a restart."""
    tokens = ApiTokens(tmp_path)
    made = tokens.add("ci", "run")
    assert tokens.find(made) is not None
    ApiTokens(tmp_path).remove("ci")
    assert tokens.find(made) is None


@pytest.mark.parametrize("text", ["", "nope", "x" * 10_000, "bw_\udcff", "null"])
def test_what_is_no_token_is_nobody_s(tmp_path: Path, text: str) -> None:
    """Whatever stands in the header, the answer is no, not a crash."""
    tokens = ApiTokens(tmp_path)
    tokens.own()
    assert tokens.find(text) is None


def test_a_name_is_used_once_and_stays_in_its_folder(tmp_path: Path) -> None:
    """A second token of a name would replace one that somebody uses."""
    tokens = ApiTokens(tmp_path)
    tokens.add("ci", "read")
    with pytest.raises(UsageError, match="already"):
        tokens.add("ci", "admin")
    with pytest.raises(UsageError, match="not a name"):
        tokens.add("../token", "admin")
    with pytest.raises(NotFound):
        tokens.remove("../token")


def test_a_broken_token_file_is_told_with_its_place(tmp_path: Path) -> None:
    """To serve on without a token that somebody relies on would look like an attack to them."""
    tokens = ApiTokens(tmp_path)
    tokens.add("ci", "read")
    (tmp_path / "tokens" / "ci.json").write_text('{"name": "ci", "scope": "god", "digest": "x"}')
    with pytest.raises(NotReady, match="not a scope") as caught:
        tokens.all()
    assert str(caught.value.place).endswith("ci.json")


def test_scopes_contain_one_another() -> None:
    """An admin who could not read would need three tokens."""
    assert TokenAccess("a", "admin").reaches("run")
    assert TokenAccess("a", "run").reaches("read")
    assert not TokenAccess("a", "read").reaches("run")
    assert not TokenAccess("a", "run").reaches("admin")
