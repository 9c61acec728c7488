"""What runs inside is sent compiled, and as text for another Python than ours."""

from __future__ import annotations

import json
import marshal
import subprocess
import sys
from importlib.util import MAGIC_NUMBER

import pytest

from bailiwick.gate.backends.pytest_run import START, code_inside, texts_inside

TEXT = "def main(request):\n    print('as text')\n"
CODE = marshal.dumps(compile(TEXT.replace("as text", "compiled"), "<here>", "exec")).hex()


@pytest.mark.parametrize(
    ("magic", "said"), [(MAGIC_NUMBER.hex(), "compiled"), ("00000000", "as text")], ids=["same Python", "another"]
)
def test_code_of_another_python_is_never_run(magic: str, said: str) -> None:
    """Byte code of one version is nonsense to another."""
    request = {"texts": [TEXT], "code": {magic: [CODE]}, "entry": "main"}
    given = json.dumps(request)
    command = [sys.executable, "-c", START]
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=True, timeout=600)
    assert (done.stdout.strip(), done.stderr) == (said, "")


def test_each_text_is_sent_in_both_forms() -> None:
    """One that was left out of either would be missing for some Python."""
    names = [marshal.loads(bytes.fromhex(code)).co_names for code in code_inside()]
    assert len(names) == len(texts_inside())
    for text, found in zip(texts_inside(), names, strict=True):
        assert found == compile(text, "<witness>", "exec", dont_inherit=True).co_names
