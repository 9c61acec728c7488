"""Running git: nothing of anybody's configuration, bounded output, errors with their kind."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from bailiwick.errors import NotReady
from bailiwick.git.runner import OFF, Git, GitFailed, GitOptions, failure, file_url, find_program
from bailiwick.processes.command import Exit
from tests.unit.git.repository_setup import make_scene


def _git() -> Git:
    return Git(os.environ["PATH"])


def test_no_file_of_the_person_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An alias or a hook in somebody's own configuration must not change what our calls do."""
    (tmp_path / ".gitconfig").write_text("[user]\n\tname = Somebody\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / ".gitconfig"))
    done = asyncio.run(_git().run("config", "--get", "user.name", call=GitOptions(cwd=tmp_path)))
    assert done.code == 1
    assert done.stdout == b""


def test_our_settings_win_over_those_of_a_repository(tmp_path: Path) -> None:
    """What is switched off for safety stays off, whatever the files of a repository say."""
    scene = make_scene(tmp_path)
    scene.git("config", "core.fsmonitor", "/bin/evil")
    scene.git("config", "core.hooksPath", "/evil")
    call = GitOptions(git_dir=scene.repo / ".git")
    for key in ("core.fsmonitor", "core.hooksPath"):
        assert asyncio.run(_git().line("config", "--get", key, call=call)) == OFF[key]


def test_no_transport_is_allowed_unless_a_call_names_it(tmp_path: Path) -> None:
    """A repository that points elsewhere can't make git connect; `ext::` would even run a program."""
    scene = make_scene(tmp_path)
    canary = tmp_path / "canary"
    call = GitOptions(git_dir=scene.repo / ".git")
    for address in (f"ext::touch% {canary}", file_url(scene.repo), "ssh://127.0.0.1:1/x", "https://127.0.0.1:1/x"):
        with pytest.raises(GitFailed, match="not allowed"):
            asyncio.run(_git().out("ls-remote", address, call=call))
    assert not canary.exists()


def test_settings_do_not_show_in_the_arguments(tmp_path: Path) -> None:
    """Everybody on the machine can read arguments; a token among the settings must not be one."""
    seen = tmp_path / "seen"
    fake = tmp_path / "bin" / "git"
    fake.parent.mkdir()
    fake.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {seen}\nenv >> {seen}.env\n')
    fake.chmod(0o755)
    git = Git(f"{fake.parent}:{os.environ['PATH']}")
    asyncio.run(git.run("push", call=GitOptions(config={"http.extraHeader": "Authorization: Basic c2VjcmV0"})))
    assert "c2VjcmV0" not in seen.read_text()
    assert "c2VjcmV0" in Path(f"{seen}.env").read_text()


def test_output_beyond_the_bound_is_an_error_not_a_cut_answer(tmp_path: Path) -> None:
    """Half of a list of files would be taken for all of it."""
    scene = make_scene(tmp_path)
    call = GitOptions(git_dir=scene.repo / ".git", keep=10)
    with pytest.raises(GitFailed, match="more than 10 bytes"):
        asyncio.run(_git().out("ls-tree", "-r", "HEAD", call=call))


def test_a_call_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    """A hanging server or disk must not hold a run for ever."""
    fake = tmp_path / "git"
    fake.write_text("#!/bin/sh\nexec tail -f /dev/null\n")
    fake.chmod(0o755)
    git = Git(f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(GitFailed) as caught:
        asyncio.run(git.run("status", call=GitOptions(timeout=0.1)))
    assert caught.value.kind == "timeout"


def test_a_cancelled_call_says_so() -> None:
    """A person's stop is not a failure of git."""
    cancel = asyncio.Event()
    cancel.set()
    with pytest.raises(GitFailed) as caught:
        asyncio.run(Git(os.environ["PATH"], cancel).run("version"))
    assert caught.value.kind == "cancelled"


def test_no_git_is_said_with_what_to_do(tmp_path: Path) -> None:
    """The first thing that a new machine lacks."""
    with pytest.raises(NotReady, match="git is not installed") as caught:
        find_program(str(tmp_path))
    assert caught.value.code == "BW410"
    assert "2.32" in caught.value.hint


def test_an_old_git_is_refused(tmp_path: Path) -> None:
    """Before 2.32 git follows a symbolic link as ignore file."""
    fake = tmp_path / "git"
    fake.write_text("#!/bin/sh\necho git version 2.30.2\n")
    fake.chmod(0o755)
    with pytest.raises(NotReady, match=r"2\.30\.2 is too old"):
        asyncio.run(Git(f"{tmp_path}:{os.environ['PATH']}").check_version())


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("fatal: Authentication failed for 'https://x/'", "auth"),
        ("fatal: could not read Username for 'https://x': terminal prompts disabled", "auth"),
        ("fatal: unable to access 'https://x/': The requested URL returned error: 403", "auth"),
        ("remote: Repository not found.\nfatal: repository 'https://x/' not found", "missing"),
        ("fatal: couldn't find remote ref refs/heads/x", "missing"),
        ("! [rejected] a -> b (stale info)", "rejected"),
        ("! [remote rejected] a -> b (pre-receive hook declined)", "declined"),
        ("remote: error: GH006: Protected branch update failed\n! [remote rejected] a (protected branch)", "declined"),
        ("fatal: unable to access 'https://x/': Could not resolve host: x", "network"),
        ("error: RPC failed; curl 56 GnuTLS recv error", "network"),
        ("fatal: unable to access 'https://x/': The requested URL returned error: 502", "network"),
        ("fatal: unable to access 'https://x/': The requested URL returned error: 301", "moved"),
        ("fatal: something nobody has seen before", "git"),
    ],
)
def test_what_the_other_side_said_is_told_apart(text: str, kind: str) -> None:
    """A wrong token needs a person, a broken line only time; whoever decides needs to know which it is."""
    done = Exit(128, b"", text.encode(), 0.1)
    assert failure("push", done, GitOptions(transports=("https",))).kind == kind


def test_a_message_never_holds_the_token() -> None:
    """Servers echo what they were sent; logs and proposals must not."""
    done = Exit(128, b"", b"remote: bad token tok-12345 for you\x1b[31m", 0.1)
    error = failure("push", done, GitOptions(transports=("https",), hide=("tok-12345",)))
    assert "tok-12345" not in error.what
    assert "\x1b" not in error.what


def test_an_address_of_a_path_with_odd_characters_leads_there(tmp_path: Path) -> None:
    """git decodes percent signs in addresses: a directory named `a%20b` would not be found."""
    scene = make_scene(tmp_path / "a%20b c#d")
    address = file_url(scene.repo / ".git")
    call = GitOptions(cwd=tmp_path, transports=("file",))
    assert "refs/heads/main" in asyncio.run(_git().line("ls-remote", address, call=call))
