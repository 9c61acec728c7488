"""The catalogues of cheats and of honest changes, as far as reading the diff can tell."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from bailiwick.gate.diffs.changes import SourceChange
from bailiwick.gate.diffs.conduct import read_conduct
from bailiwick.gate.model import Finding
from bailiwick.gate.testfiles import is_test_file
from tests.security.cheats import CHEATS
from tests.security.honest import HONEST
from tests.security.shop import BASE

READ = {
    "exit-when-imported",
    "exit-when-called",
    "exit-at-exit",
    "exit-by-timer",
    "exit-by-signal",
    "system-exit",
    "keyboard-interrupt",
    "pytest-exit",
    "skip-from-the-product",
    "xfail-from-the-product",
    "fork-and-leave",
    "module-skip-from-the-product",
    "close-the-pipe",
    "exec-something-green",
    "plugin-registered-by-the-product",
    "patched-for-known-ids",
    "patched-runtest",
    "patched-call-info",
    "patched-assert-equal",
    "swapped-test-code",
    "import-hook",
    "forged-outcomes",
    "forged-report",
    "patched-operators",
    "swallowed-by-trace",
    "package-init-exit",
}
"""Cheats in product code that have to be seen in the diff, whatever else catches them."""


def _read(files: Mapping[str, str | bytes | None], base: dict[str, str] | None) -> tuple[Finding, ...]:
    before = {**BASE, **(base or {})}
    changes = [
        SourceChange(path, _raw(before.get(path)), _raw(text), is_test_file(path))
        for path, text in files.items()
        if not (isinstance(text, str) and text.startswith("-> "))
    ]
    return read_conduct(changes, {path: text.encode() for path, text in before.items() if is_test_file(path)})


def _raw(text: str | bytes | None) -> bytes | None:
    return text.encode() if isinstance(text, str) else text


@pytest.mark.parametrize("name", sorted(READ))
def test_a_cheat_in_the_product_is_seen_in_the_diff(name: str) -> None:
    """Before it runs, and so before it can do anything about being seen."""
    cheat = next(cheat for cheat in CHEATS if cheat.name == name)
    assert any(finding.parks for finding in _read(cheat.files, cheat.base))


@pytest.mark.parametrize("name", [honest.name for honest in HONEST])
def test_an_honest_change_asks_for_nobody(name: str) -> None:
    """A gate that cries wolf is switched off."""
    honest = next(honest for honest in HONEST if honest.name == name)
    assert [finding for finding in _read(honest.files, honest.base) if finding.parks] == []
