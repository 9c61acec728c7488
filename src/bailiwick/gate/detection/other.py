"""Node, Go, Rust and Make: what their manifests say about the environment and the tests. Pure."""

from __future__ import annotations

import re

from bailiwick.gate.detection.draft import GateDraft
from bailiwick.gate.runner_commands import read_package, read_scripts, read_steps, runner_of
from bailiwick.gate.testfiles import is_test_file

_NO_TEST = "no test specified"
_LOCKS = ("package-lock.json", "npm-shrinkwrap.json")
_INSTALLED = {"vitest": ("npx", "vitest", "run"), "jest": ("npx", "jest"), "mocha": ("npx", "mocha")}
_JS = re.compile(r".*\.[cm]?js")


MAKEFILES = ("GNUmakefile", "makefile", "Makefile")


def other_languages(draft: GateDraft) -> None:
    """Node, Go and Rust: the environment, and a check of the kind that hears each outcome of the runner."""
    if "package.json" in draft.files:
        _node(draft)
    if "go.mod" in draft.files:
        _go(draft)
    if "Cargo.toml" in draft.files:
        if "Cargo.lock" in draft.files:
            draft.prepare.append(("cargo", "fetch", "--locked"))
        draft.add("tests", "cargo", "test", "--offline", kind="cargo-test")


def _node(draft: GateDraft) -> None:
    manifest = draft.texts.get("package.json", b"")
    package, scripts = read_package(manifest), read_scripts(manifest)
    listed = (package.get("dependencies"), package.get("devDependencies"))
    needs = {str(name) for names in listed if isinstance(names, dict) for name in names}
    draft.prepare += _install(draft, any_needed=bool(needs))
    if "lint" in scripts:
        draft.add("lint", "npm", "run", "lint")
    script = scripts.get("test", "")
    if script and _NO_TEST not in script:
        run: tuple[str, ...] = ("npm", "test")
    else:
        run = next((command for name, command in _INSTALLED.items() if name in needs), ())
        if not run and any(_JS.fullmatch(path) and is_test_file(path) for path in draft.files):
            run = ("node", "--test")
    if run:
        draft.add("tests", *run, kind=runner_of(read_steps(run, scripts)) or "command")


def _install(draft: GateDraft, *, any_needed: bool) -> list[tuple[str, ...]]:
    """What brings the packages, by the lock file; without one only where any are named."""
    files, has_tool = draft.files, draft.has_tool
    if files.intersection(_LOCKS):
        return [("npm", "ci")]
    for lock, manager in (("pnpm-lock.yaml", "pnpm"), ("yarn.lock", "yarn")):
        if lock in files:
            through = () if has_tool(manager) or not has_tool("corepack") else ("corepack",)
            frozen = "--immutable" if manager == "yarn" and ".yarnrc.yml" in files else "--frozen-lockfile"
            return [(*through, manager, "install", frozen)]
    return [("npm", "install", "--no-package-lock", "--no-audit", "--no-fund")] if any_needed else []


def _go(draft: GateDraft) -> None:
    if draft.texts.get("go.sum", b"").strip() and not any(path.startswith("vendor/") for path in draft.files):
        draft.prepare.append(("go", "mod", "vendor"))
    draft.add("lint", "go", "vet", "./...")
    draft.add("tests", "go", "test", "./...", kind="go-test")


def make(draft: GateDraft) -> None:
    """Make: the target `test` or `check`, where nothing else was recognised."""
    name = draft.first(*MAKEFILES)
    text = draft.texts.get(name, b"").decode("utf-8", "replace")
    for target in ("test", "check"):
        if re.search(rf"(?m)^{target}\s*::?(?!=)", text):
            draft.add("tests", "make", target)
            return
