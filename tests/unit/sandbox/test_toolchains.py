"""The operator's PATH as a sandbox sees it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from bailiwick.sandbox.toolchain_trees import follow
from bailiwick.sandbox.toolchains import (
    SYSTEM_PATH,
    Toolchains,
    binds_for,
    find_toolchains,
    install_hint,
    resolve_program,
)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home directory of nobody."""
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


def program(path: Path, text: str = "#!/bin/sh\n") -> Path:
    """Write something that can be started."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def link(path: Path, target: Path | str) -> Path:
    """Make a link, its directory included."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)
    return path


def venv(root: Path, python: Path, *names: str) -> Path:
    """Something like a virtual environment, with programs."""
    link(root / "bin" / "python", python)
    (root / "pyvenv.cfg").write_text("home = there\n")
    for name in names:
        program(root / "bin" / name, f"#!{root}/bin/python\n")
    return root


def installed(root: Path, *names: str) -> Path:
    """Something installed under a prefix of its own."""
    (root / "lib").mkdir(parents=True)
    for name in names:
        program(root / "bin" / name)
    return root


def find(
    home: Path, *path: Path | str, hidden: tuple[Path, ...] = (), env: Mapping[str, str] | None = None
) -> Toolchains:
    """Resolve a PATH."""
    return find_toolchains(os.pathsep.join(map(str, path)), home, hidden=hidden, variables=env or {})


def shown(found: Toolchains) -> set[Path]:
    """What is bound; all of it has to be read-only."""
    assert not any(bind.write for bind in found.binds)
    return {bind.target for bind in found.binds}


def own_path(found: Toolchains) -> list[str]:
    """PATH without the system's directories, which always come at the end."""
    assert found.path.endswith(SYSTEM_PATH)
    return found.path.removesuffix(SYSTEM_PATH).rstrip(":").split(":")


def test_directories_of_the_system_need_no_bind(home: Path) -> None:
    """Every sandbox shows /usr; binding parts of it again would cost mounts and gain nothing."""
    found = find(home, "/usr/bin", "/bin", "/usr/sbin")
    assert set(found.path.split(":")) == set(SYSTEM_PATH.split(":"))
    assert not any(path.is_relative_to("/usr") for path in shown(found))


def test_no_path_at_all_is_the_systems(home: Path) -> None:
    """A service may be started without PATH; its sandboxes still have a shell."""
    assert find_toolchains("", home, hidden=()) == Toolchains()


@pytest.mark.parametrize("entry", [".", "", "bin", "../bin", "~/bin"])
def test_a_relative_entry_is_left_out(home: Path, entry: str) -> None:
    """What `.` means inside is the agent's tree: a tool must never come from there."""
    found = find(home, "/usr/bin", entry)
    assert found.binds == ()
    assert [name for name, _ in found.left_out] == [entry or "."]
    assert entry not in found.path.split(":") or entry == ""


def test_shims_of_pyenv_become_the_version_that_is_asked_for(home: Path) -> None:
    """A shim needs pyenv itself and its settings; inside is the Python that it would have started, then the others.

    A project may ask for one of them by its version.
    """
    for version in ("3.9.2", "3.11.7", "3.12.1"):
        installed(home / ".pyenv/versions" / version, "python3", f"python{version.rpartition('.')[0]}")
    program(home / ".pyenv/shims/python3")
    (home / ".pyenv/version").write_text("3.11.7\n")
    by_file = find(home, home / ".pyenv/shims", home / ".pyenv/bin")
    by_variable = find(home, home / ".pyenv/shims", env={"PYENV_VERSION": "3.9.2:3.12"})
    assert shown(by_file) == {home / ".pyenv/versions" / version for version in ("3.9.2", "3.11.7", "3.12.1")}
    assert resolve_program("python3", by_file) == home / ".pyenv/versions/3.11.7/bin/python3"
    assert resolve_program("python3.12", by_file) == home / ".pyenv/versions/3.12.1/bin/python3.12"
    folders = [str(home / f".pyenv/versions/{version}/bin") for version in ("3.9.2", "3.12.1", "3.11.7")]
    assert own_path(by_variable) == folders


def test_shims_of_pyenv_without_a_choice_are_the_newest_version(home: Path) -> None:
    """3.10 is newer than 3.9: versions are compared as numbers."""
    for version in ("3.9.2", "3.10.0", "pypy3.9-7.3"):
        installed(home / ".pyenv/versions" / version, "python3")
    program(home / ".pyenv/shims/python3")
    folders = [str(home / f".pyenv/versions/{version}/bin") for version in ("3.10.0", "3.9.2")]
    assert own_path(find(home, home / ".pyenv/shims")) == folders


def test_a_virtual_environment_of_pyenv_comes_with_its_python(home: Path) -> None:
    """Its `python` is a link into the version it was made from."""
    base = installed(home / ".pyenv/versions/3.11.7", "python3")
    venv(base / "envs/tools", base / "bin/python3", "ruff")
    link(home / ".pyenv/versions/tools", base / "envs/tools")
    program(home / ".pyenv/shims/ruff")
    found = find(home, home / ".pyenv/shims", env={"PYENV_VERSION": "tools"})
    assert shown(found) == {base}
    assert resolve_program("ruff", found) == base / "envs/tools/bin/ruff"


def test_a_version_of_nvm_is_bound_with_its_packages(home: Path) -> None:
    """npm is a link into `lib/node_modules`: the programs alone would not start. nvm is a clone, and yet no work."""
    (home / ".nvm/.git").mkdir(parents=True)
    root = installed(home / ".nvm/versions/node/v20.1.0", "node")
    program(root / "lib/node_modules/npm/bin/npm-cli.js")
    link(root / "bin/npm", "../lib/node_modules/npm/bin/npm-cli.js")
    found = find(home, root / "bin")
    assert shown(found) == {root}
    assert resolve_program("npm", found) == root / "bin/npm"


def test_shims_of_mise_become_what_the_persons_configuration_asks_for(home: Path) -> None:
    """As mise would choose outside of any project: the configured line, else the newest; links are resolved."""
    installs = home / ".local/share/mise/installs"
    for version in ("18.9.0", "20.2.0", "20.11.1"):
        installed(installs / "node" / version, "node")
    link(installs / "node/latest", "20.11.1")
    program(installs / "ruff/0.9.1/ruff-x86_64/ruff")
    program(installs / "ruff/0.10.0/ruff-x86_64/ruff")
    program(home / ".local/share/mise/shims/node")
    config = home / ".config/mise/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('[tools]\nnode = ["18", "latest"]\n')
    found = find(home, home / ".local/share/mise/shims")
    assert own_path(found) == [
        str(installs / "node/18.9.0/bin"),
        str(installs / "node/20.11.1/bin"),
        str(installs / "ruff/0.10.0/ruff-x86_64"),
    ]
    assert shown(found) == {installs / "node/18.9.0", installs / "node/20.11.1", installs / "ruff/0.10.0"}


def test_a_broken_configuration_of_mise_is_as_none(home: Path) -> None:
    """It is the person's file for another program: it must not keep a run from starting."""
    installed(home / ".local/share/mise/installs/go/1.22.0", "go")
    program(home / ".local/share/mise/shims/go")
    (home / ".config/mise").mkdir(parents=True)
    (home / ".config/mise/config.toml").write_text("[tools\n")
    assert resolve_program("go", find(home, home / ".local/share/mise/shims")) is not None


def test_shims_of_asdf_become_what_tool_versions_says(home: Path) -> None:
    """asdf reads the person's own `.tool-versions` where no project has one."""
    for version in ("16.1.0", "20.1.0"):
        installed(home / ".asdf/installs/nodejs" / version, "node")
    program(home / ".asdf/shims/node")
    (home / ".tool-versions").write_text("# mine\nnodejs 16.1.0 # old\n\nruby system\n")
    found = find(home, home / ".asdf/shims", home / ".asdf/bin")
    assert own_path(found) == [str(home / ".asdf/installs/nodejs/16.1.0/bin")]


def test_proxies_of_rustup_become_the_default_toolchain(home: Path) -> None:
    """A proxy wants to write to ~/.rustup; what `cargo install` put beside it is taken file by file."""
    toolchain = installed(home / ".rustup/toolchains/stable-x86_64-unknown-linux-gnu", "cargo", "rustc")
    nightly = installed(home / ".rustup/toolchains/nightly-x86_64-unknown-linux-gnu", "cargo")
    (home / ".rustup/settings.toml").write_text(
        'version = "12"\ndefault_toolchain = "stable-x86_64-unknown-linux-gnu"\n'
    )
    program(home / ".cargo/bin/rustup")
    link(home / ".cargo/bin/cargo", "rustup")
    tool = program(home / ".cargo/bin/just")
    (home / ".cargo/credentials.toml").write_text("token")
    found = find(home, home / ".cargo/bin")
    assert shown(found) == {toolchain, tool}
    assert resolve_program("cargo", found) == toolchain / "bin/cargo"
    assert resolve_program("just", found) == tool
    assert nightly in shown(find(home, home / ".cargo/bin", env={"RUSTUP_TOOLCHAIN": "nightly"}))


def test_pythons_of_uv_are_there_for_whoever_asks_by_version(home: Path) -> None:
    """uv inside has a home of its own and looks on PATH for `python3.12`; the newest comes first."""
    root = home / ".local/share/uv/python"
    for version in ("3.9.1", "3.12.4"):
        installed(root / f"cpython-{version}-linux-x86_64-gnu", "python3", f"python{version[:-2]}")
    found = find(home, "/usr/bin")
    names = [f"cpython-{version}-linux-x86_64-gnu" for version in ("3.12.4", "3.9.1")]
    assert shown(found) == {root / name for name in names}
    inside = found.path.split(":")
    assert inside.index(str(root / names[0] / "bin")) < inside.index(str(root / names[1] / "bin"))


def test_tools_in_local_bin_come_with_the_trees_behind_them(home: Path) -> None:
    """uv and pipx put links there: each needs its virtual environment, and that its Python; `~/.local` stays unseen."""
    python = installed(home / ".local/share/uv/python/cpython-3.12.4-linux-x86_64-gnu", "python3.12")
    ruff = venv(home / ".local/share/uv/tools/ruff", python / "bin/python3.12", "ruff")
    black = venv(home / ".local/share/pipx/venvs/black", Path("/usr/bin/env"), "black")
    script = program(home / ".local/bin/mine")
    link(home / ".local/bin/ruff", ruff / "bin/ruff")
    link(home / ".local/bin/black", "../share/pipx/venvs/black/bin/black")
    link(home / ".local/bin/python3.12", python / "bin/python3.12")
    (home / ".local/lib").mkdir()
    found = find(home, home / ".local/bin")
    assert shown(found) == {home / ".local/bin", ruff, black, python}
    assert resolve_program("mine", found) == script
    assert resolve_program("ruff", found) == home / ".local/bin/ruff"


def test_a_script_comes_with_the_interpreter_it_names(home: Path) -> None:
    """Long paths are written as a shell line by installers: that form counts too."""
    base = installed(home / "sdk/python", "python3")
    short = program(home / "tools/short", f"#!{base}/bin/python3\nprint(1)\n")
    long = program(home / "more/long", f"#!/bin/sh\n'''exec' {base}/bin/python3 \"$0\" \"$@\"\n' '''\n")
    assert shown(find(home, short.parent)) == {short.parent, base}
    assert shown(find(home, long.parent)) == {long.parent, base}


def test_a_prefix_under_opt_like_trees_is_bound_whole(home: Path) -> None:
    """Go, a JDK or conda lie in a tree of their own, of which `bin` is a part."""
    for name, mark in (("go", "lib"), ("conda", "conda-meta"), ("brew", "Cellar")):
        (home / name / mark).mkdir(parents=True)
        program(home / name / "bin" / name)
    found = find(home, *(home / name / "bin" for name in ("go", "conda", "brew")))
    assert shown(found) == {home / "brew", home / "conda", home / "go" / "bin"}, "~/go holds work, so only its programs"


def test_a_work_tree_is_never_a_source_of_tools(home: Path) -> None:
    """What an agent proposes today may lie in the person's checkout tomorrow: it must not become the gate's tool."""
    (home / "project/.git").mkdir(parents=True)
    program(home / "project/bin/pytest")
    link(home / ".local/bin/pytest", home / "project/bin/pytest")
    found = find(home, home / "project/bin", home / ".local/bin")
    assert shown(found) == {home / ".local/bin"}
    assert found.left_out == ((str(home / "project/bin"), "it lies in a work tree"),)
    assert own_path(found) == [str(home / ".local/bin")]


def test_an_activated_virtual_environment_is_a_source_of_tools_wherever_it_lies(home: Path) -> None:
    """Most people keep it in their checkout, which no agent can write to."""
    (home / "project/.git").mkdir(parents=True)
    made = venv(home / "project/.venv", Path("/usr/bin/env"), "pytest")
    found = find(home, home / "project/.venv/bin")
    assert home / "project/.venv" in shown(found), made
    assert own_path(found) == [str(home / "project/.venv/bin")]


def test_a_home_kept_in_git_still_has_tools(home: Path) -> None:
    """Dotfiles in git make no work tree of everything."""
    (home / ".git").mkdir()
    program(home / "bin/mine")
    assert shown(find(home, home / "bin")) == {home / "bin"}


def test_a_directory_that_others_can_write_to_is_left_out(home: Path) -> None:
    """Somebody else on the machine would choose what runs; a directory above is as good as the directory."""
    program(home / "open/mine")
    program(home / "above/inner/mine")
    (home / "open").chmod(0o777)
    (home / "above").chmod(0o777)
    found = find(home, home / "open", home / "above/inner")
    assert found.binds == ()
    assert {why for _, why in found.left_out} == {"others can write to it"}


@pytest.mark.parametrize("place", ["state", "state/tools", "."])
def test_what_is_private_is_never_shown(home: Path, place: str) -> None:
    """A tool that lies in the state directory, or around it, would bring the keys along."""
    program(home / "base/state/tools/mine")
    found = find(home, home / "base" / place, hidden=(home / "base/state",))
    assert found.binds == ()
    assert len(found.left_out) == 1


def test_a_prefix_around_something_private_is_cut_down_to_its_programs(home: Path) -> None:
    """The tools stay usable as far as they stand alone; the rest of the tree stays out of sight."""
    (home / "suite/lib").mkdir(parents=True)
    program(home / "suite/bin/mine")
    assert shown(find(home, home / "suite/bin", hidden=(home / "suite/state",))) == {home / "suite/bin"}


@pytest.mark.parametrize("name", [".", ".ssh", ".ssh/bin", ".config", ".local", ".local/share", ".aws/bin"])
def test_a_home_and_its_private_directories_are_never_bound(home: Path, name: str) -> None:
    """However PATH came to hold them."""
    program(home / name / "mine")
    assert find(home, home / name).binds == ()


def test_a_home_that_is_a_link_is_shown_as_it_is_spelled_too(tmp_path: Path) -> None:
    """Scripts name their interpreter by the path that people see, not by the one behind the link."""
    real = tmp_path / "disk" / "alice"
    installed(real / "sdk", "tool")
    spelled = link(tmp_path / "alice", real)
    found = find(spelled, spelled / "sdk/bin")
    assert {(bind.source, bind.target) for bind in found.binds} == {
        (real / "sdk", real / "sdk"),
        (real / "sdk", spelled / "sdk"),
    }


def test_a_name_with_a_slash_or_unknown_is_no_program(home: Path) -> None:
    """A path would let a check name a file of the work tree."""
    found = find(home, "/usr/bin")
    assert resolve_program("env", found) is not None
    assert resolve_program("no-such-program", found) is None
    assert resolve_program("./env", found) is None
    assert resolve_program("", found) is None


def test_a_binary_of_a_node_package_brings_its_package(home: Path) -> None:
    """An agent's native program finds its files beside itself; a link to it is followed, its neighbours stay unseen."""
    modules = home / "x/node_modules"
    binary = program(modules / "@vendor/agent-linux-x64/vendor/bin/agent", "\x7fELF")
    program(modules / "other/index.js")
    entry = link(home / "bin/agent", binary)
    assert [bind.target for bind in binds_for(entry)] == [modules / "@vendor/agent-linux-x64"]
    assert follow(entry) == binary


def test_a_script_of_a_node_package_brings_what_it_may_require(home: Path) -> None:
    """Its dependencies lie beside it in `node_modules`."""
    modules = home / "x/node_modules"
    script = program(modules / "agent/cli.js", "#!/usr/bin/env node\n")
    assert [bind.target for bind in binds_for(script)] == [modules]


def test_a_program_alone_brings_itself(home: Path) -> None:
    """Not the directory it lies in: that may hold anything."""
    single = program(home / "downloads/agent", "\x7fELF")
    assert [bind.target for bind in binds_for(single, home=home)] == [single]
    assert binds_for(Path("/usr/bin/env")) == ()
    assert binds_for(home / "missing") == ()


def test_a_program_of_a_home_with_a_lib_directory_does_not_bring_the_home(home: Path) -> None:
    """`~/bin` beside `~/lib` looks like an installation; it is somebody's home."""
    (home / "lib").mkdir()
    single = program(home / "bin/agent")
    assert [bind.target for bind in binds_for(single, home=home)] == [single]


def test_the_python_of_a_virtual_environment_is_started_there(home: Path) -> None:
    """Followed to its end it would be another Python, without the packages."""
    base = installed(home / "sdk/python", "python3")
    tree = venv(home / "venv", base / "bin/python3", "tool")
    assert follow(tree / "bin/python") == tree / "bin/python"
    assert {bind.target for bind in binds_for(tree / "bin/tool")} == {tree, base}


def test_a_loop_of_links_and_of_interpreters_ends(home: Path) -> None:
    """Whatever lies about in a directory of PATH, a run starts."""
    link(home / "bin/a", home / "bin/b")
    link(home / "bin/b", home / "bin/a")
    one = program(home / "s/one", f"#!{home}/s/two\n")
    program(home / "s/two", f"#!{one}\n")
    assert shown(find(home, home / "bin", home / "s")) == {home / "bin", home / "s"}


@pytest.mark.parametrize(
    ("name", "hint"),
    [("ruff", "uv tool install ruff"), ("npm", "apt-get install npm"), ("python3.12", "uv python install 3.12")],
)
def test_a_missing_tool_has_a_command_that_brings_it(name: str, hint: str) -> None:
    """The message of a failed check is where the person learns what to type."""
    assert install_hint(name) == hint
    assert "frobnicate" in install_hint("frobnicate")
