"""Prepared environments: made once from the base's lock files, whole or not at all, and only mounted afterwards."""

from __future__ import annotations

import asyncio
import os
import stat
from pathlib import Path

import pytest

from bailiwick.environments.prepared import (
    EnvironmentFailed,
    PreparedEnvironment,
    Recipe,
    bin_folders,
    binds_of,
    prepare_environment,
    sweep_environments,
    tool_variables,
)
from bailiwick.git.store import GitStore
from bailiwick.sandbox.spec import INNER, Bind
from tests.unit.gate.gate_stage import GateSetup, make_stage, real_sandbox, spec_of

VENV = "mkdir -p .venv/bin && printf '#!/bin/sh\\necho tool' > .venv/bin/tool && chmod 4755 .venv/bin/tool"


@pytest.fixture
def stage(tmp_path: Path) -> GateSetup:
    made = make_stage(tmp_path, real_sandbox())
    made.scene.commit({"uv.lock": "one\n", "app.py": "x = 1\n", "pkg/a/package.json": "{}\n"})
    return made


def _recipe(*lines: str, copy: tuple[str, ...] = ()) -> Recipe:
    return Recipe(tuple(("sh", "-c", line) for line in lines), copy)


def _prepared(stage: GateSetup, recipe: Recipe) -> PreparedEnvironment:
    async def history(git_store: GitStore) -> PreparedEnvironment:
        return await prepare_environment(recipe, await git_store.resolve("HEAD"), stage.builder(git_store))

    return stage.run(history)


def test_what_prepare_makes_is_mounted_read_only_in_the_gate(stage: GateSetup) -> None:
    """The gate needs no network, finds the tools of the environment, and can't change them for the next run.

    Files that were made beside them come along, at any depth.
    """
    spec = spec_of(f"""
prepare: [[sh, -c, {VENV!r}], [sh, -c, "mkdir -p pkg/a/node_modules && touch pkg/a/node_modules/x pkg/a/other"]]
checks:
  - {{name: tool, run: [tool]}}
  - {{name: read-only, run: [sh, -c, "! touch .venv/bin/evil"]}}
  - {{name: nested, run: [sh, -c, "test -e pkg/a/node_modules/x && test -e pkg/a/other"]}}
  - {{name: no-network, run: [sh, -c, "! grep -q eth /proc/net/dev && test -z \\"$HTTPS_PROXY\\""]}}
""")
    report = stage.check({"app.py": "x = 2\n"}, spec)
    assert [(c.name, c.outcome, c.output) for c in report.checks if c.outcome != "passed"] == []
    assert report.verdict == "green"
    assert report.environment
    assert list(stage.scratch.iterdir()) == []


def test_an_environment_is_made_once_for_the_same_lock_files(stage: GateSetup) -> None:
    """Minutes of downloads are paid once; a changed lock file makes another one, changed code does not."""
    first = _prepared(stage, _recipe(VENV))
    made = first.binds[0].source.stat().st_ctime_ns
    stage.scene.commit({"app.py": "x = 2\n"})
    assert _prepared(stage, _recipe(VENV)) == first
    assert first.binds[0].source.stat().st_ctime_ns == made
    stage.scene.commit({"uv.lock": "two\n"})
    assert _prepared(stage, _recipe(VENV)).digest != first.digest
    assert sum("preparing" in line for line in stage.shown) == 2


def test_other_commands_or_a_copy_of_the_code_make_another_environment(stage: GateSetup) -> None:
    """An environment that holds the code itself would test the code of another day."""
    plain = _prepared(stage, _recipe(VENV))
    assert _prepared(stage, _recipe(VENV, "true")).digest != plain.digest
    copied = Recipe((("echo", "install", "."),))
    before = _prepared(stage, copied)
    stage.scene.commit({"app.py": "x = 3\n"})
    assert _prepared(stage, copied).digest != before.digest


def test_what_a_package_wrote_is_ours_and_harmless(stage: GateSetup) -> None:
    """Packages run their own code while they are installed: no special bits and no special files come of it."""
    found = _prepared(stage, _recipe(VENV, "mkfifo .venv/pipe; ln -s /etc/passwd .venv/link; chmod 700 .venv"))
    folder = found.binds[0].source
    tool = (folder / "bin/tool").stat()
    assert stat.S_IMODE(tool.st_mode) == 0o755
    assert (tool.st_uid, stat.S_IMODE(folder.stat().st_mode)) == (os.geteuid(), 0o755)
    assert not (folder / "pipe").exists()
    assert (folder / "link").is_symlink()


def test_many_at_once_make_one(stage: GateSetup) -> None:
    """Five runs start at night in one repository: one prepares, the others wait for it."""

    async def history(git_store: GitStore) -> list[PreparedEnvironment]:
        base = await git_store.resolve("HEAD")
        asked = [prepare_environment(_recipe(VENV), base, stage.builder(git_store)) for _ in range(5)]
        return list(await asyncio.gather(*asked))

    assert len(set(stage.run(history))) == 1
    assert sum("preparing" in line for line in stage.shown) == 1


def test_a_failing_prepare_leaves_nothing_and_says_why(stage: GateSetup) -> None:
    """Half an environment would be worse than none; a person needs the tool's own words."""
    with pytest.raises(EnvironmentFailed) as failed:
        _prepared(stage, _recipe(VENV, "echo 'no such package' >&2; exit 3"))
    assert "exits with 3" in failed.value.what
    assert "no such package" in failed.value.output
    left = [path for path in (stage.places.cache / "environments").iterdir() if path.suffix != ".lock"]
    assert left == []


def test_a_missing_tool_is_named_with_the_way_to_get_it(stage: GateSetup) -> None:
    """`uv` may well not be installed where the gate runs."""
    with pytest.raises(EnvironmentFailed) as failed:
        _prepared(stage, Recipe((("nonesuch-installer", "sync"),)))
    assert "nonesuch-installer" in failed.value.what
    assert failed.value.hint


def test_a_host_that_is_no_registry_is_refused_and_named(stage: GateSetup) -> None:
    """Preparing reaches registries and nothing else; who needs another one has to see its name."""
    dial = "import os,socket,sys;s=socket.create_connection(('127.0.0.1',8802));"
    dial += "s.sendall(b'CONNECT evil.example:443 HTTP/1.1\\r\\nHost: evil.example:443\\r\\n\\r\\n');"
    dial += "print(s.recv(99));sys.exit(9)"
    with pytest.raises(EnvironmentFailed) as failed:
        _prepared(stage, Recipe((("python3", "-c", dial),)))
    assert "403" in failed.value.output
    assert "evil.example:443" in failed.value.hint


def test_ignored_files_are_brought_and_a_missing_one_is_an_error(stage: GateSetup) -> None:
    """Tests may need a file that is not committed; only those that are listed leave the person's work tree."""
    stage.scene.put({".env.test": "A=1\n", ".env": "SECRET=1\n"})
    spec = spec_of("""
copy: [.env.test]
checks: [{name: a, run: [sh, -c, "grep -q A=1 .env.test && ! test -e .env"]}]
""")
    assert stage.check({"app.py": "x = 2\n"}, spec).verdict == "green"
    (stage.scene.repo / ".env.test").unlink()
    report = stage.check({"app.py": "x = 2\n"}, spec)
    assert report.verdict == "environment"
    assert ".env.test" in report.checks[0].findings[0].what


def test_a_link_out_of_the_work_tree_is_not_brought(stage: GateSetup) -> None:
    """`copy` must not become a way to read the person's other files."""
    (stage.scene.repo / "link.txt").symlink_to("/etc/passwd")
    with pytest.raises(EnvironmentFailed):
        _prepared(stage, Recipe(copy=("link.txt",)))


def test_what_nobody_uses_and_what_a_crash_left_is_swept(stage: GateSetup) -> None:
    """Environments are large; half-made ones belong to nobody."""
    old = _prepared(stage, _recipe(VENV))
    stage.clock.advance(1000.0)
    new = _prepared(stage, _recipe(VENV, "true"))
    folder = stage.places.cache / "environments"
    (folder / f".new-{new.digest}-0a").mkdir()
    gone = sweep_environments(stage.places.cache, 500.0, stage.clock.now())
    assert gone == [f".new-{new.digest}-0a", old.digest]
    assert binds_of(stage.places.cache, new.digest) == new.binds
    with pytest.raises(EnvironmentFailed):
        binds_of(stage.places.cache, old.digest)
    with pytest.raises(EnvironmentFailed):
        binds_of(stage.places.cache, "../../etc")


def test_without_a_sandbox_each_tree_is_prepared_by_itself(tmp_path: Path) -> None:
    """Nothing can be mounted there, and it is said; the checks find the same tools all the same."""
    stage = make_stage(tmp_path)
    spec = spec_of(f"prepare: [[sh, -c, {VENV!r}]]\nchecks: [{{name: a, run: [tool]}}]")
    report = stage.check({"app.py": "x = 2\n"}, spec)
    assert (report.verdict, report.checks[0].output) == ("green", "tool")
    assert any("nothing can be mounted" in line for line in stage.shown)


def test_only_read_only_mounts_count_as_tools() -> None:
    """A `.venv` that the tree brings along is the agent's: its programs are not the gate's."""
    binds = (Bind(Path("/c/made/.venv"), INNER / ".venv"), Bind(Path("/t/venv"), INNER / "venv", write=True))
    assert bin_folders(binds) == (INNER / ".venv/bin",)
    assert bin_folders((Bind(Path("/c/n"), INNER / "pkg/node_modules"),)) == ()
    assert tool_variables(binds)["VIRTUAL_ENV"] == str(INNER / ".venv")
    assert "VIRTUAL_ENV" not in tool_variables(())


def test_what_a_crash_left_of_an_environment_is_gone_when_it_is_made(stage: GateSetup) -> None:
    """Half of an environment may be gigabytes; only the one that is being made is known to be nobody's."""
    first = _prepared(stage, _recipe(VENV))
    folder = first.binds[0].source.parents[1].parent
    (folder / first.digest / "made.json").unlink()
    left, other = folder / f".new-{first.digest}-0123", folder / f".new-{'0' * 40}-0123"
    for path in (left, other):
        (path / "tree").mkdir(parents=True)
    assert _prepared(stage, _recipe(VENV)) == first
    assert (left.exists(), other.exists()) == (False, True)
