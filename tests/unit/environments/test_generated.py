"""Files that `prepare` makes, and how they come into a checkout."""

from __future__ import annotations

import os
from pathlib import Path

from bailiwick.environments.generated import CHECKED_OUT, copy_into, keep_new, listing, set_times


def _tree(top: Path) -> Path:
    for path in ("src/shop/__init__.py", "setup.py"):
        (top / path).parent.mkdir(parents=True, exist_ok=True)
        (top / path).write_text("x\n")
    return top


def _put(top: Path, *paths: str) -> None:
    for path in paths:
        (top / path).parent.mkdir(parents=True, exist_ok=True)
        (top / path).write_text(path)


def test_everything_new_is_kept_at_any_depth_but_caches(tmp_path: Path) -> None:
    """`_version.py` and built extensions lie among the sources; byte code would shadow what is proposed."""
    tree, kept = _tree(tmp_path / "tree"), tmp_path / "kept"
    before = listing(tree)
    made = (
        "src/shop/_version.py",
        "src/shop/fast.so",
        "src/shop.egg-info/PKG-INFO",
        "build/lib/a.o",
        ".venv/bin/python",
    )
    _put(tree, *made, "src/shop/__pycache__/a.pyc", "build/__pycache__/b.pyc", ".git/config", "src/node_modules/x/y")
    (tree / "link").symlink_to("/etc")
    found = keep_new(tree, kept, before)
    assert set(found.mounted) == {".venv", "src/node_modules"}
    assert set(found.copied) == {"build", "src/shop.egg-info", "src/shop/_version.py", "src/shop/fast.so"}
    assert sorted(p.name for p in kept.rglob("*.pyc")) == []
    assert (kept / "build/lib/a.o").is_file()


def test_a_copy_never_replaces_what_the_checkout_has(tmp_path: Path) -> None:
    """What is tested is what is proposed: a tracked file of the same name wins, and so does a directory's own file."""
    kept, tree = tmp_path / "kept", _tree(tmp_path / "tree")
    _put(kept, "src/shop/_version.py", "build/a", "build/b")
    _put(tree, "src/shop/_version.py", "build/a")
    (tree / "src/shop/_version.py").write_text("proposed")
    (tree / "build/a").write_text("proposed")
    copy_into(kept, ("src/shop/_version.py", "build"), tree)
    assert (tree / "src/shop/_version.py").read_text() == "proposed"
    assert (tree / "build/a").read_text() == "proposed"
    assert (tree / "build/b").read_text() == "build/b"


def test_a_link_in_the_proposed_tree_leads_no_copy_elsewhere(tmp_path: Path) -> None:
    """An agent can put a link where a directory of the base was."""
    kept, tree, outside = tmp_path / "kept", tmp_path / "tree", tmp_path / "outside"
    outside.mkdir()
    tree.mkdir()
    _put(kept, "src/shop/_version.py", "build/a")
    (tree / "src").symlink_to(outside)
    (tree / "build").symlink_to(outside)
    copy_into(kept, ("src/shop/_version.py", "build"), tree)
    assert list(outside.iterdir()) == []


def test_unchanged_files_are_as_old_as_those_that_were_built_from(tmp_path: Path) -> None:
    """A build that compares times would otherwise build everything again in every checkout."""
    kept, tree = tmp_path / "kept", _tree(tmp_path / "tree")
    _put(kept, "build/a.o")
    os.utime(kept / "build/a.o", (CHECKED_OUT + 60, CHECKED_OUT + 60))
    set_times(tree, {"setup.py"})
    copy_into(kept, ("build",), tree)
    assert (tree / "src/shop/__init__.py").stat().st_mtime == CHECKED_OUT
    assert (tree / "setup.py").stat().st_mtime > CHECKED_OUT
    assert (tree / "build/a.o").stat().st_mtime == CHECKED_OUT + 60
