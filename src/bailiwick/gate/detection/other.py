"""Node, Go, Rust and Make: what their manifests say about the environment and the tests. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from bailiwick.gate.detection.draft import GateDraft
from bailiwick.gate.runner_commands import read_package, read_scripts, read_steps, runner_of
from bailiwick.gate.testfiles import is_test_file

_NO_TEST = "no test specified"
_LOCKS = ("package-lock.json", "npm-shrinkwrap.json")
_INSTALLED = {"vitest": ("npx", "vitest", "run"), "jest": ("npx", "jest"), "mocha": ("npx", "mocha")}
_JS = re.compile(r".*\.[cm]?js")


@dataclass(frozen=True, slots=True)
class RunnerCommand:
    """A check that was detected."""

    name: str
    run: tuple[str, ...]
    kind: str = "command"


@dataclass(slots=True)
class RunnerPlan:
    """What prepares an environment, and the checks."""

    prepare: list[tuple[str, ...]] = field(default_factory=list)
    checks: list[RunnerCommand] = field(default_factory=list)


def runner_checks(files: frozenset[str], texts: Mapping[str, bytes], has_tool: Callable[[str], bool]) -> RunnerPlan:
    """The plan for the manifests at the top; empty where there is none."""
    plan = RunnerPlan()
    if "package.json" in files:
        _node(plan, files, texts.get("package.json", b""), has_tool)
    if "go.mod" in files:
        _go(plan, files, texts.get("go.sum", b""))
    if "Cargo.toml" in files:
        if "Cargo.lock" in files:
            plan.prepare.append(("cargo", "fetch", "--locked"))
        plan.checks.append(RunnerCommand("tests", ("cargo", "test", "--offline"), "cargo-test"))
    return plan


def _node(plan: RunnerPlan, files: frozenset[str], manifest: bytes, has_tool: Callable[[str], bool]) -> None:
    package, scripts = read_package(manifest), read_scripts(manifest)
    listed = (package.get("dependencies"), package.get("devDependencies"))
    needs = {str(name) for names in listed if isinstance(names, dict) for name in names}
    plan.prepare += _install(files, has_tool, any_needed=bool(needs))
    if "lint" in scripts:
        plan.checks.append(RunnerCommand("lint", ("npm", "run", "lint")))
    script = scripts.get("test", "")
    if script and _NO_TEST not in script:
        run: tuple[str, ...] = ("npm", "test")
    else:
        run = next((command for name, command in _INSTALLED.items() if name in needs), ())
        if not run and any(_JS.fullmatch(path) and is_test_file(path) for path in files):
            run = ("node", "--test")
    if run:
        plan.checks.append(RunnerCommand("tests", run, runner_of(read_steps(run, scripts)) or "command"))


def _install(files: frozenset[str], has_tool: Callable[[str], bool], *, any_needed: bool) -> list[tuple[str, ...]]:
    """What brings the packages, by the lock file; without one only where any are named."""
    if files.intersection(_LOCKS):
        return [("npm", "ci")]
    for lock, manager in (("pnpm-lock.yaml", "pnpm"), ("yarn.lock", "yarn")):
        if lock in files:
            through = () if has_tool(manager) or not has_tool("corepack") else ("corepack",)
            frozen = "--immutable" if manager == "yarn" and ".yarnrc.yml" in files else "--frozen-lockfile"
            return [(*through, manager, "install", frozen)]
    return [("npm", "install", "--no-package-lock", "--no-audit", "--no-fund")] if any_needed else []


def _go(plan: RunnerPlan, files: frozenset[str], sums: bytes) -> None:
    if sums.strip() and not any(path.startswith("vendor/") for path in files):
        plan.prepare.append(("go", "mod", "vendor"))
    plan.checks.append(RunnerCommand("lint", ("go", "vet", "./...")))
    plan.checks.append(RunnerCommand("tests", ("go", "test", "./..."), "go-test"))


MAKEFILES = ("GNUmakefile", "makefile", "Makefile")


def other_languages(draft: GateDraft) -> None:
    """Node, Go and Rust: the environment, and a check of the kind that hears each outcome of the runner."""
    plan = runner_checks(draft.files, draft.texts, draft.has_tool)
    draft.prepare += plan.prepare
    for check in plan.checks:
        draft.add(check.name, *check.run, kind=check.kind)


def make(draft: GateDraft) -> None:
    """Make: the target `test` or `check`, where nothing else was recognised."""
    name = draft.first(*MAKEFILES)
    text = draft.texts.get(name, b"").decode("utf-8", "replace")
    for target in ("test", "check"):
        if re.search(rf"(?m)^{target}\s*::?(?!=)", text):
            draft.add("tests", "make", target)
            return
