"""Node, Go, Rust and Make: what their manifests say about the environment and the tests. Pure."""

from __future__ import annotations

import re

from bailiwick.gate.detection.draft import GateDraft
from bailiwick.gate.detection.runner_plans import runner_checks

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
