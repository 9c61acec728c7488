"""Where files live."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from bailiwick.config.paths import find_paths
from bailiwick.config.variables import Environment
from bailiwick.errors import NotReady


def test_the_xdg_defaults_are_below_home() -> None:
    """A person looks for files where every other program puts them."""
    paths = find_paths(Environment({"HOME": "/home/ann"}))
    assert (paths.config, paths.state, paths.cache) == (
        Path("/home/ann/.config/bailiwick"),
        Path("/home/ann/.local/state/bailiwick"),
        Path("/home/ann/.cache/bailiwick"),
    )
    assert (paths.run, paths.runs) == (paths.state / "run", paths.state / "runs")


def test_xdg_variables_move_the_directories_and_relative_ones_are_ignored() -> None:
    """The XDG rules say that a relative path in these variables is invalid."""
    names = {"HOME": "/h", "XDG_CONFIG_HOME": "/c", "XDG_STATE_HOME": "state", "XDG_RUNTIME_DIR": "/r"}
    paths = find_paths(Environment(names))
    assert (paths.config, paths.run) == (Path("/c/bailiwick"), Path("/r/bailiwick"))
    assert paths.state == Path("/h/.local/state/bailiwick")


def test_bailiwick_home_puts_everything_under_one_directory_but_not_the_policy() -> None:
    """A variable must not be a way around the organisation's limits."""
    paths = find_paths(Environment({"HOME": "/h", "BAILIWICK_HOME": "/b", "XDG_CONFIG_HOME": "/c"}), Path("/etc/b"))
    assert {paths.config.parent, paths.state.parent, paths.cache.parent, paths.run.parent} == {Path("/b")}
    assert paths.policy_file == Path("/etc/b/policy.yaml")


def test_the_state_directory_is_private_even_if_it_was_open_before(tmp_path: Path) -> None:
    """Keys and journals are in it; a careless mkdir must not stay open to others."""
    paths = find_paths(Environment({"BAILIWICK_HOME": str(tmp_path)}))
    paths.state.mkdir(parents=True, mode=0o755)
    assert stat.S_IMODE(paths.make_state().stat().st_mode) == 0o700


def test_a_state_directory_that_can_not_be_made_is_explained(tmp_path: Path) -> None:
    """Exit 8 with the path and a way out, not a traceback."""
    (tmp_path / "state").write_text("a file in the way")
    with pytest.raises(NotReady) as caught:
        find_paths(Environment({"BAILIWICK_HOME": str(tmp_path)})).make_state()
    assert str(tmp_path / "state") in str(caught.value.place)
