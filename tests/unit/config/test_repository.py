"""The repository's own layer: from the base commit, without running anything of the repository."""

from __future__ import annotations

from pathlib import Path

import pytest

from bailiwick.config.repository import Remote, find_remote, parse_remote
from bailiwick.errors import NotReady
from tests.unit.config.places import ConfigLayers


@pytest.fixture
def committed_world(world: ConfigLayers) -> ConfigLayers:
    """A git repository whose committed configuration allows one agent."""
    world.git("init", "-q")
    world.write_repository("night: {agents: 1}\n")
    world.commit()
    return world


def test_an_uncommitted_edit_is_reported_and_not_used(committed_world: ConfigLayers) -> None:
    """An agent that edits the file in its tree changes nothing, and a person is told why theirs did nothing."""
    file = committed_world.write_repository("night: {agents: 2}\nmodel: huge\n")
    config = committed_world.load()
    assert (config.get("night.agents"), config.get("model")) == (1, None)
    (notice,) = config.notices
    assert (notice.code, str(notice.place)) == ("BW221", str(file))


def test_a_deleted_file_still_counts_until_its_deletion_is_committed(committed_world: ConfigLayers) -> None:
    """Taking a limit away is an edit like another."""
    (committed_world.repository / ".bailiwick" / "config.yaml").unlink()
    config = committed_world.load()
    assert config.get("night.agents") == 1
    assert len(config.notices) == 1


def test_a_file_that_was_never_committed_is_not_used(world: ConfigLayers) -> None:
    """Also before the first commit, when HEAD points nowhere."""
    world.git("init", "-q")
    world.write_repository("night: {agents: 1}\n")
    config = world.load()
    assert config.get("night.agents") == 2
    assert [notice.code for notice in config.notices] == ["BW221"]


def test_the_committed_file_counts_from_a_directory_below(committed_world: ConfigLayers) -> None:
    """Commands are given anywhere in a work tree; nothing is reported when nothing differs."""
    config = committed_world.load(cwd=committed_world.repository / "src" / "deep")
    assert (config.get("night.agents"), config.notices) == (1, ())


def test_reading_the_repository_runs_nothing_that_it_configures(committed_world: ConfigLayers) -> None:
    """Hooks, a file system monitor and a pager of the repository are code of somebody else."""
    trap = committed_world.root / "trap"
    script = committed_world.write(committed_world.root / "evil", f"#!/bin/sh\ntouch '{trap}'\n")
    script.chmod(0o755)
    for name in ("core.fsmonitor", "core.pager", "core.sshCommand", "diff.external", "core.editor"):
        committed_world.git("config", name, str(script))
    assert committed_world.load().get("night.agents") == 1
    assert not trap.exists()


def test_where_git_can_not_tell_the_command_stops(committed_world: ConfigLayers) -> None:
    """Going on without the repository's limits would loosen them."""
    (committed_world.repository / ".git" / "HEAD").write_text("nonsense")
    with pytest.raises(NotReady) as caught:
        committed_world.load()
    assert caught.value.code == "BW214"


def test_outside_git_the_file_itself_counts(world: ConfigLayers) -> None:
    """There is no commit to read from, so the file is taken as it is."""
    world.write_repository("night: {agents: 1}\n")
    assert world.load(cwd=world.repository / "sub").get("night.agents") == 1


def test_an_empty_git_folder_is_no_work_tree(world: ConfigLayers) -> None:
    """Sandboxes leave them in shared directories; taking one for a repository would hide the configuration."""
    world.write_repository("night: {agents: 1}\n")
    (world.repository / ".git").mkdir()
    assert world.load(cwd=world.repository).get("night.agents") == 1


@pytest.mark.parametrize(
    ("url", "remote"),
    [
        ("https://forge.example/team/app.git", Remote("forge.example", "team", "app")),
        ("https://user:pw@Forge.example:8443/team/app/", Remote("forge.example", "team", "app")),
        ("git@forge.example:team/app.git", Remote("forge.example", "team", "app")),
        ("ssh://git@forge.example:22/group/sub/app", Remote("forge.example", "group/sub", "app")),
        ("../elsewhere", None),
        ("/srv/git/app.git", None),
        ("https://forge.example/../../etc/app", None),
        ("git@..:team/app", None),
        ("https://forge.example/app", None),
        ("", None),
    ],
)
def test_a_remote_is_read_in_its_usual_forms_and_never_leads_out_of_the_directory(
    url: str, remote: Remote | None
) -> None:
    """The parts become a path below repos/, so a hostile URL must not become another path."""
    assert parse_remote(url) == remote


def test_the_remote_of_a_linked_worktree_is_that_of_its_repository(
    committed_world: ConfigLayers, tmp_path: Path
) -> None:
    """Agents work in linked worktrees, whose .git is a file that points elsewhere."""
    committed_world.git("remote", "add", "upstream", "https://forge.example/other/app")
    committed_world.git("remote", "add", "origin", "https://forge.example/team/app")
    committed_world.git("worktree", "add", "-q", str(tmp_path / "linked"), "-b", "side")
    assert find_remote(tmp_path / "linked") == Remote("forge.example", "team", "app")
