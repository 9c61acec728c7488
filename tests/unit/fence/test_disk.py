"""How much a sandbox writes is seen."""

from __future__ import annotations

import asyncio
from pathlib import Path

from bailiwick.fence.cage import MB, Limits
from bailiwick.fence.disk import measure, watch_disk


def _fill(folder: Path, files: int, size: int = 0) -> Path:
    folder.mkdir()
    for number in range(files):
        (folder / str(number)).write_bytes(bytes(size))
    return folder


def test_bytes_and_files_of_all_trees_are_counted(tmp_path: Path) -> None:
    """A home counts as well as a tree."""
    trees = (_fill(tmp_path / "a", 3, MB), _fill(tmp_path / "b", 2))
    used = measure(trees, Limits())
    assert (used.files, used.whole) == (5, True)
    assert 3 * MB <= used.bytes < 4 * MB


def test_a_look_ends_at_the_limit(tmp_path: Path) -> None:
    """A tree of millions of files must not cost us minutes to refuse."""
    used = measure((_fill(tmp_path / "a", 50),), Limits(inodes=10))
    assert (used.files, used.whole) == (11, False)


def test_links_are_not_followed_and_holes_take_nothing(tmp_path: Path) -> None:
    """A link to / is no more than a name; a sparse file takes what is on the disk."""
    tree = _fill(tmp_path / "a", 0)
    (tree / "link").symlink_to("/")
    with (tree / "sparse").open("wb") as file:
        file.truncate(10**12)
    used = measure((tree,), Limits())
    assert used.files == 2
    assert used.bytes < MB


def test_a_directory_that_is_gone_counts_nothing(tmp_path: Path) -> None:
    """Things are removed while we look."""
    assert measure((tmp_path / "gone",), Limits()) == (0, 0, True)


def test_who_watches_is_told_once_and_why(tmp_path: Path) -> None:
    """The person reads the reason."""
    told: list[str] = []
    asyncio.run(watch_disk((_fill(tmp_path / "a", 2, MB),), Limits(disk=MB), told.append))
    asyncio.run(watch_disk((_fill(tmp_path / "b", 9),), Limits(inodes=5), told.append))
    assert ["wrote more than" in told[0], "made more than 5 files" in told[1], len(told)] == [True, True, 2]


def test_without_anything_to_watch_there_is_no_watch() -> None:
    """A cage that writes nothing costs nothing."""
    asyncio.run(asyncio.wait_for(watch_disk((), Limits(), lambda _: None), 5))
