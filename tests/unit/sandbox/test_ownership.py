"""Trees change hands safely, and nothing is mounted through a link."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bailiwick.errors import NotReady
from bailiwick.sandbox.ownership import FIRST_UID, UIDS, give_back, hand_over, make_mount_points, uid_of
from bailiwick.sandbox.spec import INNER, Bind, SandboxSpec

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


def _sandbox_spec(*trees: Path, home: Path | None = None, owner: str = "") -> SandboxSpec:
    return SandboxSpec("agent", tuple(Bind(tree, INNER, write=True) for tree in trees), home=home, owner=owner)


def test_a_tree_has_the_same_uid_each_time_and_others_have_another(tmp_path: Path) -> None:
    """Files that one command made are the next one's, and nobody else's."""
    one, two = tmp_path / "one", tmp_path / "two"
    assert uid_of(_sandbox_spec(one)) == uid_of(_sandbox_spec(one, home=two))
    assert uid_of(_sandbox_spec(one)) != uid_of(_sandbox_spec(two))
    assert uid_of(_sandbox_spec(one, owner="run")) == uid_of(_sandbox_spec(two, owner="run"))
    assert all(FIRST_UID <= uid_of(_sandbox_spec(tree)) < FIRST_UID + UIDS for tree in (one, two))


def test_sandboxes_that_write_nothing_share_no_uid() -> None:
    """They could signal each other's children, were it not for other walls."""
    assert uid_of(_sandbox_spec()) != uid_of(_sandbox_spec())


@as_root
def test_a_tree_is_given_away_and_back(tmp_path: Path) -> None:
    """All of it, and what somebody else made in between stays theirs."""
    tree = tmp_path / "tree"
    (tree / "deep/er").mkdir(parents=True)
    (tree / "deep/er/file").write_text("x")
    assert hand_over(tree, FIRST_UID) == 4
    assert {path.lstat().st_uid for path in (tree, *tree.rglob("*"))} == {FIRST_UID}
    assert hand_over(tree, FIRST_UID) == 0
    os.chown(tree / "deep", 12345, 12345)
    assert give_back(tree, FIRST_UID) == 3
    assert (tree / "deep").stat().st_uid == 12345


@as_root
def test_a_link_is_given_away_and_not_what_it_leads_to(tmp_path: Path) -> None:
    """An agent may put a link to anything into its tree."""
    tree, outside = tmp_path / "tree", tmp_path / "outside"
    for folder in (tree, outside):
        folder.mkdir()
    (outside / "file").write_text("ours")
    (tree / "link").symlink_to(outside / "file")
    (tree / "folder").symlink_to(outside)
    hand_over(tree, FIRST_UID)
    assert (tree / "link").lstat().st_uid == FIRST_UID
    assert {outside.stat().st_uid, (outside / "file").stat().st_uid} == {0}


@as_root
def test_a_file_with_another_name_elsewhere_stays_ours(tmp_path: Path) -> None:
    """git makes clones out of hard links: given away as they are, the objects of our own repository would be too."""
    tree, ours = tmp_path / "tree", tmp_path / "object"
    tree.mkdir()
    ours.write_text("object")
    ours.chmod(0o444)
    (tree / "object").hardlink_to(ours)
    hand_over(tree, FIRST_UID)
    assert (ours.stat().st_uid, ours.stat().st_nlink) == (0, 1)
    mine = (tree / "object").stat()
    assert (mine.st_uid, mine.st_mode & 0o777, (tree / "object").read_text()) == (FIRST_UID, 0o444, "object")
    assert mine.st_mtime_ns == ours.stat().st_mtime_ns
    assert [path.name for path in tree.iterdir()] == ["object"]


@pytest.mark.parametrize(
    "place", ["/", "/usr", "/usr/share/doc", "/etc", "/home", "/home/somebody", "/root", "/tmp", "/var"]
)
def test_the_system_and_homes_are_never_given_away(place: str) -> None:
    """A cage that asks for it was built wrong."""
    with pytest.raises(NotReady, match="given to the sandbox"):
        hand_over(Path(place), FIRST_UID)


def test_the_place_of_a_mount_is_made(tmp_path: Path) -> None:
    """A directory for a directory, a file for a file, with the owner of the tree."""
    tree, venv, file = tmp_path / "tree", tmp_path / "venv", tmp_path / "file"
    for folder in (tree, venv):
        folder.mkdir()
    file.write_text("x")
    binds = (Bind(tree, INNER, write=True), Bind(venv, INNER / "a/.venv"), Bind(file, INNER / "a/settings"))
    make_mount_points(binds)
    make_mount_points(binds)
    assert (tree / "a/.venv").is_dir()
    assert (tree / "a/settings").read_bytes() == b""


@pytest.mark.parametrize("what", ["link", "file", "dangling", "fifo"])
def test_what_is_in_the_way_of_a_mount_is_refused(tmp_path: Path, what: str) -> None:
    """Whoever mounts is root: it must not be led elsewhere, nor wait for somebody."""
    tree, outside, venv = (tmp_path / name for name in ("tree", "outside", "venv"))
    for folder in (tree, outside, venv):
        folder.mkdir()
    place = tree / "a"
    match what:
        case "link":
            place.symlink_to(outside)
        case "dangling":
            place.symlink_to(outside / "new")
        case "fifo":
            os.mkfifo(place)
        case _:
            place.write_text("")
    with pytest.raises(NotReady) as raised:
        make_mount_points((Bind(tree, INNER, write=True), Bind(venv, INNER / "a/b")))
    assert raised.value.code == "BW403"
    assert list(outside.iterdir()) == []
