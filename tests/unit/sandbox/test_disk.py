"""How much a sandbox writes is seen."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bailiwick.processes.command import Exit
from bailiwick.sandbox.disk import (
    COARSE,
    EVERY,
    SOONEST,
    DiskUsage,
    Growth,
    disk_words,
    measure,
    over,
    reclaim,
    watch_disk,
)
from bailiwick.sandbox.spec import MB, SandboxLimits


def _fill(folder: Path, files: int, size: int = 0) -> Path:
    folder.mkdir()
    for number in range(files):
        (folder / str(number)).write_bytes(bytes(size))
    return folder


def test_bytes_and_files_of_all_trees_are_counted(tmp_path: Path) -> None:
    """A home counts as well as a tree."""
    trees = (_fill(tmp_path / "a", 3, MB), _fill(tmp_path / "b", 2))
    used = measure(trees, SandboxLimits())
    assert (used.files, used.whole) == (5, True)
    assert 3 * MB <= used.bytes < 4 * MB


def test_a_look_ends_at_the_limit(tmp_path: Path) -> None:
    """A tree of millions of files must not cost us minutes to refuse."""
    used = measure((_fill(tmp_path / "a", 50),), SandboxLimits(inodes=10))
    assert (used.files, used.whole) == (11, False)


def test_links_are_not_followed_and_holes_take_nothing(tmp_path: Path) -> None:
    """A link to / is no more than a name; a sparse file takes what is on the disk."""
    tree = _fill(tmp_path / "a", 0)
    (tree / "link").symlink_to("/")
    with (tree / "sparse").open("wb") as file:
        file.truncate(10**12)
    used = measure((tree,), SandboxLimits())
    assert used.files == 2
    assert used.bytes < MB


def test_a_directory_that_is_gone_counts_nothing(tmp_path: Path) -> None:
    """Things are removed while we look."""
    assert measure((tmp_path / "gone",), SandboxLimits()) == (0, 0, True)


def test_who_watches_is_told_once_and_why(tmp_path: Path) -> None:
    """The person reads the reason."""
    told: list[str] = []
    asyncio.run(watch_disk((_fill(tmp_path / "a", 2, MB),), SandboxLimits(disk=MB), told.append))
    asyncio.run(watch_disk((_fill(tmp_path / "b", 9),), SandboxLimits(inodes=5), told.append))
    assert ["wrote more than" in told[0], "made more than 5 files" in told[1], len(told)] == [True, True, 2]


def test_without_anything_to_watch_there_is_no_watch() -> None:
    """A cage that writes nothing costs nothing."""
    asyncio.run(asyncio.wait_for(watch_disk((), SandboxLimits(), lambda _: None), 600))


def test_looks_come_more_often_as_a_limit_nears() -> None:
    """Whoever writes slowly is hardly looked at; whoever writes fast is not found out a second too late."""
    growth = Growth(SandboxLimits(disk=1000 * MB, inodes=1000))
    growth.see(DiskUsage(0, 0), 10.0)
    assert growth.pause(0.001) == EVERY
    growth.see(DiskUsage(MB, 1), 11.0)
    assert growth.pause(0.001) == EVERY
    growth.see(DiskUsage(401 * MB, 2), 12.0)
    assert growth.pause(0.001) == pytest.approx(599 / 400 / 4)
    growth.see(DiskUsage(900 * MB, 3), 13.0)
    assert growth.pause(1.0) == pytest.approx(100 / 499 / 4), "a slow look is no reason to wait near the limit"
    growth.see(DiskUsage(990 * MB, 900), 13.1)
    assert growth.pause(0.001) == SOONEST


def test_who_would_pass_the_limit_before_the_next_look_is_ended_now() -> None:
    """Half a million files take long to count: then it would be too late."""
    growth = Growth(SandboxLimits(inodes=500_000))
    growth.see(DiskUsage(0, 300_000), 10.0)
    growth.see(DiskUsage(0, 400_000), 11.0)
    assert not growth.is_too_fast(0.1)
    assert growth.is_too_fast(0.6)
    words = over(DiskUsage(30 * MB, 400_000), growth.limits)
    assert "400000 files" in words
    assert "20 GB on disk, 500000 files" in words


def _age(folder: Path) -> float:
    """A time after which everything is new that is made from now on."""
    mark = folder / "mark"
    mark.write_text("")
    made = mark.stat().st_ctime
    while mark.stat().st_ctime <= made:
        mark.touch()
    made = mark.stat().st_ctime
    mark.unlink()
    return made + COARSE


def test_the_space_comes_back_and_small_work_stays(tmp_path: Path) -> None:
    """The large files are the bomb: what was there before, and what the agent wrote besides, is none."""
    tree = _fill(tmp_path / "tree", 3, MB)
    since = _age(tmp_path)
    (tree / "edit.py").write_text("x = 1\n")
    (tree / "new").mkdir()
    (tree / "new" / "bomb").write_bytes(bytes(8 * MB))
    freed = reclaim([tree], SandboxLimits(disk=10 * MB), since)
    assert (freed.files, freed.bytes >= 8 * MB) == (2, True)
    assert sorted(path.name for path in tree.iterdir()) == ["0", "1", "2", "edit.py"]


def test_a_crowd_of_files_goes_before_single_ones(tmp_path: Path) -> None:
    """An inode bomb has no large file; it is where the many are."""
    tree = _fill(tmp_path / "tree", 1)
    since = _age(tmp_path)
    (tree / "edit.py").write_text("x = 1\n")
    _fill(tree / "bomb", 300)
    (tree / "bomb" / "deep").mkdir()
    freed = reclaim([tree], SandboxLimits(inodes=200), since)
    assert freed.files == 302
    assert sorted(path.name for path in tree.iterdir()) == ["0", "edit.py"]


def test_where_nothing_stands_out_all_that_is_new_goes(tmp_path: Path) -> None:
    """Many files in many directories, none of them large: the limit holds all the same."""
    tree = _fill(tmp_path / "tree", 2)
    since = _age(tmp_path)
    for number in range(100):
        _fill(tree / f"d{number}", 2)
    (tree / "link").symlink_to(tmp_path)
    reclaim([tree], SandboxLimits(inodes=200), since)
    assert sorted(path.name for path in tree.iterdir()) == ["0", "1"]
    assert tmp_path.is_dir()


def test_a_program_that_was_ended_for_the_disk_says_which_limit() -> None:
    """The last line of ours tells; what the program said before does not."""
    said = b"bailiwick: made up\nmore\nbailiwick: it wrote more than 1 MB to disk, the limit of a sandbox\n"
    assert disk_words(Exit(-9, b"", said, 1.0, why="disk")).startswith("it wrote more than 1 MB")
    assert disk_words(Exit(-9, b"", said, 1.0)) == ""
