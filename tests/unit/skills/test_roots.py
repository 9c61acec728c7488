"""A project outside the roots is refused, whatever name it is given by."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path

import pytest

from bailiwick.config.service import load_config
from bailiwick.errors import UsageError
from bailiwick.skills.roots import NO_PROJECT, NOT_ALLOWED, check_root, current_root, private_places


def test_a_directory_inside_a_root_is_given_as_its_real_path(tmp_path: Path) -> None:
    """Everything later compares real paths."""
    (tmp_path / "work" / "shop").mkdir(parents=True)
    assert (
        check_root(str(tmp_path / "work" / "shop" / ".." / "shop"), [tmp_path / "work"]) == tmp_path / "work" / "shop"
    )
    assert check_root("shop", [tmp_path / "work"]) == tmp_path / "work" / "shop"


def test_a_link_that_leads_out_of_the_roots_is_refused(tmp_path: Path) -> None:
    """The name lies inside, the directory does not."""
    (tmp_path / "work").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "work" / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError) as caught:
        check_root(str(tmp_path / "work" / "link"), [tmp_path / "work"])
    assert caught.value.code == NOT_ALLOWED


def test_a_refusal_hands_nobody_a_way_around_it(tmp_path: Path) -> None:
    """Whoever reads it may be a model with a shell: it hears whose decision that is, and no command."""
    with pytest.raises(UsageError, match="roots") as caught:
        check_root("/somewhere", [tmp_path])
    assert "bailiwick" not in caught.value.hint
    assert "only the person who started the server" in caught.value.hint


def test_without_roots_nothing_is_allowed() -> None:
    """The default of `serve` is an empty list."""
    for name in ("/", ".", "shop"):
        with pytest.raises(UsageError) as caught:
            check_root(name, [])
        assert caught.value.code == NOT_ALLOWED


@pytest.mark.parametrize("name", ["", "  ", "a\0b"])
def test_a_name_that_is_none_is_refused(name: str, tmp_path: Path) -> None:
    """It would mean the root itself, or break a system call."""
    with pytest.raises(UsageError) as caught:
        check_root(name, [tmp_path])
    assert caught.value.code == NO_PROJECT


def test_what_is_no_directory_is_refused(tmp_path: Path) -> None:
    """A project is a directory that is there."""
    (tmp_path / "file").touch()
    for name in ("file", "missing"):
        with pytest.raises(UsageError) as caught:
            check_root(str(tmp_path / name), [tmp_path])
        assert caught.value.code == NO_PROJECT


def test_outside_the_roots_nobody_learns_what_is_there(tmp_path: Path) -> None:
    """The same words for a directory, a file and nothing."""
    (tmp_path / "work").mkdir()
    (tmp_path / "secret").mkdir()
    said = []
    for name in ("secret", "nothing"):
        with pytest.raises(UsageError) as caught:
            check_root(str(tmp_path / name), [tmp_path / "work"])
        said.append(caught.value.what.replace(name, "X"))
    assert said[0] == said[1]


@pytest.mark.parametrize("name", ["", "home", "home/config", "home/config/skills/mine"])
def test_a_project_neither_holds_our_own_files_nor_lies_among_them(tmp_path: Path, name: str) -> None:
    """A skill could change what decides over it, or show it to a model."""
    (tmp_path / "home" / "config" / "skills" / "mine").mkdir(parents=True)
    (tmp_path / "shop").mkdir()
    private = [tmp_path / "home" / "config"]
    with pytest.raises(UsageError, match="own files"):
        check_root(str(tmp_path / name), [tmp_path], private)
    assert check_root("shop", [tmp_path], private) == tmp_path / "shop"


def test_our_own_files_are_where_the_configuration_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a person keeps their notes elsewhere."""
    monkeypatch.setenv("BAILIWICK_HOME", str(tmp_path))
    monkeypatch.setenv("SUPERVISOR_BRAIN_DIR", str(tmp_path / "notes"))
    places = private_places(load_config(tmp_path, {}))
    assert {tmp_path / "config", tmp_path / "state", tmp_path / "cache", tmp_path / "notes"} <= set(places)


def test_the_current_root_is_the_top_of_the_repository_else_the_directory(tmp_path: Path) -> None:
    """What stdio and the command line may work on."""
    (tmp_path / "plain").mkdir()
    (tmp_path / "repo" / "deep").mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(tmp_path / "repo")], check=True, timeout=600)
    assert asyncio.run(current_root(tmp_path / "plain")) == tmp_path / "plain"
    assert asyncio.run(current_root(tmp_path / "repo" / "deep")) == tmp_path / "repo"
