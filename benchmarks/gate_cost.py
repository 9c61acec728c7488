"""What the gate costs over the bare test run, on real projects: first on a base, and again on the same base."""

from __future__ import annotations

import ast
import asyncio
import os
import pwd
import shutil
import subprocess
import sys
import tarfile
import time
from pathlib import Path

from bailiwick.clock import SystemClock
from bailiwick.config.service import load_config
from bailiwick.config.variables import Environment
from bailiwick.environments.prepared import EnvironmentFailed
from bailiwick.gate.backends.command import try_command
from bailiwick.gate.check_trees import Trees
from bailiwick.gate.from_config import gate_for, places_of
from bailiwick.gate.report import FOLDER
from bailiwick.gate.service import GateOptions, GateRequest, environment_builder, run_gate, try_prepare
from bailiwick.git.store import GitStore
from bailiwick.sandbox.service import open_sandboxes
from benchmarks.measure import ROOT, Bench, PartFailed, Reading, Spread
from benchmarks.report import Figure
from tests.projects.table import PROJECTS

NAMES = ("blinker", "colorama", "h11", "jsonpointer", "parse", "tabulate", "toolz", "semver")
FIRST, AGAIN = 3.0, 2.0
"""How many times the bare run a gate may take."""


def measure(bench: Bench) -> list[Figure]:
    """A small honest change in each project: the bare run, the gate with nothing known of the base, and once more."""
    names = NAMES[: bench.pick(len(NAMES), 2)]
    found: dict[str, Reading] = {}
    for name in names:
        bench.say(f"gate: {name}")
        found[name] = bench.part("gate_cost", "project", number=NAMES.index(name), rounds=bench.pick(3, 1))
    return [
        _figure("gate-first", "a gate on a base that it has not seen", found, "first", FIRST),
        _figure("gate-again", "a gate on a base that it knows", found, "again", AGAIN),
    ]


def _figure(name: str, what: str, found: dict[str, Reading], key: str, bound: float) -> Figure:
    ratios = {project: reading[key] / reading["bare"] for project, reading in found.items()}
    spread = Spread.of(list(ratios.values()))
    seconds = "; ".join(
        f"{project} {ratios[project]:.2f} × ({reading['bare']:.2f} s → {reading[key]:.2f} s)"
        for project, reading in found.items()
    )
    note = f"medians of each project, bare → gate: {seconds}"
    return Figure(name, what, f"≤ {bound:g} ×", spread, "× the bare run", {}, spread.middle, "×", bound, note=note)


def project(folder: Path, number: int, rounds: int) -> Reading:
    """Seconds of one project: bare, first, again; the best of some rounds each, in turn."""
    tree = _fetched(folder, NAMES[number])
    return asyncio.run(_measured(folder, tree, NAMES[number], rounds))


def _fetched(folder: Path, name: str) -> Path:
    known = next(project for project in PROJECTS if project.name == name)
    home = pwd.getpwuid(os.getuid()).pw_dir
    python = Path(sys.base_prefix) / "bin" / "python3"  # which has pip; the benchmarks' own environment has not
    done = subprocess.run(
        [python, ROOT / "tests" / "projects" / "index.py", known.name, known.version, folder],
        env={**os.environ, "HOME": home},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise PartFailed(f"{name} can't be fetched: {done.stderr.strip()[-300:]}")
    file, hosts, index = done.stdout.splitlines()
    with tarfile.open(file) as archive:
        archive.extractall(folder / "work", filter="data")
    (tree,) = (folder / "work").iterdir()
    os.environ.update(BAILIWICK_HOME=str(folder / "home"), PIP_INDEX_URL=index)
    command = [sys.executable, "-m", "bailiwick"]
    for words in (["config", "set", "sandbox.allow", f"[{', '.join(hosts.split())}]"], ["init", "--yes"]):
        subprocess.run(["git", "init", "--quiet"], cwd=tree, check=True)
        subprocess.run([*command, *words], cwd=tree, check=True, capture_output=True)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@localhost"]
    for words in (["add", "--all"], ["commit", "--quiet", "--message", "as it is"]):
        subprocess.run([*git, *words], cwd=tree, check=True, capture_output=True)
    module = tree / known.module
    module.write_text(_changed(module.read_text("utf-8"), known.function), "utf-8")
    return tree


def _changed(source: str, name: str) -> str:
    """The module with a statement that does nothing put into one function that tests cover."""
    function = next(n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.FunctionDef) and n.name == name)
    last = function.body[-1]
    lines = source.splitlines(keepends=True)
    lines.insert(last.lineno - 1, f"{' ' * last.col_offset}str()\n")
    return "".join(lines)


async def _measured(folder: Path, tree: Path, name: str, rounds: int) -> Reading:
    environment = Environment()
    config = load_config(tree, {}, environment=environment)
    sandboxes = await open_sandboxes(config, attended=True, environment=environment)
    git_store = await GitStore.open(config.paths.state, tree, environment=environment)
    base = await git_store.resolve("HEAD")
    spec = await gate_for(config, git_store, base, sandboxes)
    places = places_of(config, environment)
    how: GateOptions = {"cancel": asyncio.Event(), "show": lambda _: None, "clock": SystemClock()}
    builder = environment_builder(git_store, sandboxes, places, **how)
    prepared = await try_prepare(spec, base, builder)
    if isinstance(prepared, EnvironmentFailed):
        raise PartFailed(f"{name}: {prepared.what}")
    how["prepared"] = prepared
    changed = (await git_store.survey(tree)).tree
    tests = next(check for check in spec.checks if check.kind == "pytest")
    taken: dict[str, list[float]] = {"bare": [], "first": [], "again": []}
    for _ in range(rounds):
        trees = Trees(builder, base, prepared, folder / f"trees-{len(taken['bare'])}")
        began = time.perf_counter()
        await try_command(tests, await trees.context(changed), "proposed")
        taken["bare"].append(time.perf_counter() - began)
        await trees.close()
        shutil.rmtree(config.paths.cache / FOLDER, ignore_errors=True)
        for key in ("first", "again"):
            began = time.perf_counter()
            report = await run_gate(GateRequest(base, changed), spec, git_store, sandboxes, places, **how)
            taken[key].append(time.perf_counter() - began)
            if report.verdict != "green":
                raise PartFailed(f"{name}: the gate is {report.verdict}")
    return {key: min(values) for key, values in taken.items()}


PARTS = {"project": project}
