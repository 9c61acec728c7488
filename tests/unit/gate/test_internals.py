"""What libraries keep for the whole process is noticed when it is changed, in a process of its own."""

from __future__ import annotations

import subprocess
import sys

import pytest

from bailiwick.gate.ids import tampering
from bailiwick.gate.outcomes import PytestSession
from bailiwick.gate.plugin.internals import SETTING

CHANGES = {
    "csv dialect excel": "import csv; csv.register_dialect('excel', delimiter=';')",
    "csv dialect unix": "import csv; csv.unregister_dialect('unix')",
    "json decoder": "import json; json._default_decoder.object_hook = print",
    "json encoder": "import json; json._default_encoder.sort_keys = True",
    "logging.disable": "import logging; logging.disable(50)",
    "decimal context": "decimal.getcontext().prec = 3",
    "re cache": "import re; re._cache[str, 'abc', 0] = re.compile('x')",
}


def _seen(change: str) -> list[str]:
    text = (
        "import decimal\nfrom bailiwick.gate.plugin.internals import Internals\nkept = Internals()\n"
        f"{change}\nprint('\\n'.join(kept.changed()))\n"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True, timeout=600)
    return done.stdout.split("\n")[:-1]


@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_setting_is_noticed(name: str) -> None:
    """None of these is a function or a constant of a module."""
    assert _seen(CHANGES[name]) == [f"{SETTING}{name}"]


def test_what_stays_is_not_told() -> None:
    """To use a library changes none of them."""
    uses = "import csv, json, re; json.loads('[1]'); re.search('a+', 'aa'); csv.register_dialect('own', delimiter=';')"
    assert _seen(uses) == [""]


PARTS = {
    "__code__": "(lambda *given: None).__code__",
    "__defaults__": "(1,)",
    "__kwdefaults__": "{'given': 1}",
}


@pytest.mark.parametrize("part", PARTS)
def test_a_part_of_a_function_that_was_exchanged_is_told_until_it_is_put_back(part: str) -> None:
    """Each look tells it, however often it was told."""
    change = (
        f"import json\nwas = json.loads.{part}\njson.loads.{part} = {PARTS[part]}\n"
        f"first = kept.changed()\nsecond = kept.changed()\njson.loads.{part} = was\n"
        "print(first, second, kept.changed())"
    )
    assert _seen(change)[0] == f"['json.loads.{part}'] ['json.loads.{part}'] []"


def test_a_note_on_a_function_is_no_change() -> None:
    """Decorators leave such notes; what the function does stays the same."""
    assert _seen("import json; json.loads.note = 1; json.dumps.__doc__ = 'x'") == [""]


def test_a_setting_asks_for_a_person_and_a_part_of_the_runner_blocks() -> None:
    """Honest code may change a setting; what the base changes too is not about the change."""
    here = PytestSession(
        changed=frozenset({f"{SETTING}json decoder", "_pytest.runner.x", f"{SETTING}csv dialect unix"})
    )
    base = PytestSession(changed=frozenset({f"{SETTING}csv dialect unix"}))
    found = {(finding.code, finding.blocks, finding.parks) for finding in tampering(base, here)}
    assert found == {("library-setting", False, True), ("runner-patched", True, False)}
