"""Node, Go, Rust and Make: what their manifests say about the environment and the tests. Pure."""

from __future__ import annotations

import json
import re

from bailiwick.gate.detection.draft import Draft

MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
_NO_TEST = "no test specified"


def node(draft: Draft) -> None:
    """Node: the lock file, and the scripts `lint` and `test`."""
    if "package.json" not in draft.files:
        return
    if draft.first("package-lock.json", "npm-shrinkwrap.json"):
        draft.prepare.append(("npm", "ci"))
    elif "pnpm-lock.yaml" in draft.files:
        draft.prepare.append(("pnpm", "install", "--frozen-lockfile"))
    elif "yarn.lock" in draft.files:
        draft.prepare.append(("yarn", "install", "--frozen-lockfile"))
    scripts = _scripts(draft.texts.get("package.json", b""))
    if "lint" in scripts:
        draft.add("lint", "npm", "run", "lint")
    if "test" in scripts and _NO_TEST not in scripts["test"]:
        draft.add("tests", "npm", "test")


def _scripts(data: bytes) -> dict[str, str]:
    try:
        scripts = json.loads(data).get("scripts", {})
        return {str(name): str(text) for name, text in scripts.items()}
    except (ValueError, AttributeError, RecursionError):
        return {}


def go(draft: Draft) -> None:
    """Go: modules, vet and tests."""
    if "go.mod" not in draft.files:
        return
    vendored = any(path.startswith("vendor/") for path in draft.files)
    if draft.texts.get("go.sum", b"").strip() and not vendored:
        draft.prepare.append(("go", "mod", "vendor"))
    draft.add("lint", "go", "vet", "./...")
    draft.add("tests", "go", "test", "./...")


def rust(draft: Draft) -> None:
    """Rust: Cargo and its tests."""
    if "Cargo.toml" not in draft.files:
        return
    if "Cargo.lock" in draft.files:
        draft.prepare.append(("cargo", "fetch", "--locked"))
    draft.add("tests", "cargo", "test", "--offline")


def make(draft: Draft) -> None:
    """Make: the target `test` or `check`, where nothing else was recognised."""
    name = draft.first(*MAKEFILES)
    text = draft.texts.get(name, b"").decode("utf-8", "replace")
    for target in ("test", "check"):
        if re.search(rf"(?m)^{target}\s*::?(?!=)", text):
            draft.add("tests", "make", target)
            return
