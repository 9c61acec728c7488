"""What a diff must not carry."""

from __future__ import annotations

import base64
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bailiwick.gate.diffs.changes import SourceChange
from bailiwick.gate.diffs.hygiene import read_hygiene
from bailiwick.gate.model import Finding
from tests.unit.gate.diffs.sources import modules

SECRET = "s3cr3t/Value+With=Signs&42"


def _read(new: str | bytes, old: str | None = None, path: str = "shop.py") -> tuple[Finding, ...]:
    raw = new if isinstance(new, bytes) else new.encode()
    change = SourceChange(path, None if old is None else old.encode(), raw, is_test=False)
    found = read_hygiene([change], [SECRET, "short"])
    assert not any(SECRET in finding.what or SECRET in finding.path for finding in found)
    return found


DECEIVING = {
    "turned text": ("x = 'a\u202e b'\n", "hygiene-bidirectional"),
    "an isolate": ("# \u2066 x\n", "hygiene-bidirectional"),
    "a mark of direction": ("x = '\u200f'\n", "hygiene-bidirectional"),
    "zero width": ("x = 'a\u200bb'\n", "hygiene-invisible"),
    "a joiner between letters": ("x = 'a\u200db'\n", "hygiene-invisible"),
    "a soft hyphen": ("x = 'pass\u00adword'\n", "hygiene-invisible"),
    "a filler that is a letter": ("\u3164 = 1\n", "hygiene-invisible"),
    "a mark inside": ("x = '\ufeff'\n", "hygiene-invisible"),
    "a tag": ("x = '\U000e0041'\n", "hygiene-invisible"),
    "a backspace": ("x = 1  # \x08\x08\n", "hygiene-invisible"),
    "a lone return": ("x = 1  # fine\rimport os\n", "hygiene-invisible"),
    "another script": ("p\u0430ssword = 1\n", "hygiene-look-alike"),
    "a whole word of another script": ("\u0441\u043e\u0440\u0435 = 1\n", "hygiene-look-alike"),
    "braille without dots": ("x = '\u2800'\n", "hygiene-invisible"),
    "another blank": ("x = 'a\u2003b'\n", "hygiene-invisible"),
    "a wide blank among plain letters": ("x = 'a\u3000b'\n", "hygiene-invisible"),
    "a selector behind a word": ("x = 'admin\U000e0101'\n", "hygiene-invisible"),
    "a selector of Mongolian behind a word": ("x = 'admin\u180b'\n", "hygiene-invisible"),
    "an unassigned one that shows nothing": ("x = 'a\U000e0fff'\n", "hygiene-invisible"),
    "a letter of sound writing": ("\u0261ross = 1\n", "hygiene-look-alike"),
    "a small capital": ("\u1d20alue = 1\n", "hygiene-look-alike"),
    "a letter of Lisu": ("\ua4eeLL = 1\n", "hygiene-look-alike"),
    "a letter without its dot beside the name with one": ("s\u0131ze = 2; size = 1\n", "hygiene-look-alike"),
    "letters of mathematics": ("\U0001d41e\U0001d431\U0001d41e\U0001d41c('1')\n", "hygiene-look-alike"),
}


@pytest.mark.parametrize("case", DECEIVING.values(), ids=DECEIVING.keys())
def test_what_deceives_the_reader_of_code_asks_for_a_person(case: tuple[str, str]) -> None:
    """The diff is what a person judges by: it has to show what runs."""
    text, code = case
    found = _read(f"y = 1\n{text}", "y = 1\n")
    assert {(finding.code, finding.parks, finding.blocks, finding.line) for finding in found} >= {
        (code, True, False, 2)
    }


HONEST = {
    "an escape": "x = '\\u202e'\n",
    "emoji": "x = '\u2764\ufe0f \U0001f468\u200d\U0001f469'\n",
    "a joiner in a script that needs it": "x = '\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645'\n",
    "names with accents": "größe = 1\n",
    "names in another script": "цена = 1\n",
    "names in Turkish": "sayı = 1\n",
    "names in Danish": "bør = 1\n",
    "braille": "SPIN = '\u2801\u2803\u2800\u2807'\n",
    "a blank between number and unit": "x = '5\u202fkm 6\u00a0km'\n",
    "a wide blank in Japanese": "x = '\u540d\u3000\u524d'\n",
    "a variant of an ideograph": "x = '\u845b\U000e0100'\n",
    "a byte order mark": "\ufeffx = 1\n",
    "other signs": "x = '→ … “ ” €'\n",
    "another script in a text": "x = 'p\u0430ss'  # \u0430\n",
    "line ends of two signs": "x = 1\r\ny = 2\r\n",
    "form feeds": "x = 1\n\x0c\ny = 2\n",
}


@pytest.mark.parametrize("text", HONEST.values(), ids=HONEST.keys())
def test_honest_text_is_left_alone(text: str) -> None:
    """People write in all languages."""
    assert _read(text) == ()


def test_only_added_lines_are_read() -> None:
    """What was there before is not this change's doing; in documents such signs are a note."""
    old = "x = 'a\u202eb'\n"
    assert _read(f"{old}y = 1\n", old) == ()
    assert [finding.parks for finding in _read(old, path="docs/a.md")] == [False]


@pytest.mark.parametrize("path", ["shop/prices.abi3.so", "prices.pyd", "shop/prices.pyc"])
def test_a_module_that_nobody_can_read_asks_for_a_person(path: str) -> None:
    """Python takes it before the source of the same name."""
    assert [(f.code, f.parks, f.blocks) for f in _read(b"\x7fELF\0", path=path)] == [
        ("hygiene-binary-module", True, False)
    ]
    assert _read(b"\x7fELF\0", path="shop/notes.sofa") == ()


def test_a_pointer_of_lfs_asks_for_a_person() -> None:
    """What it points to is not in the diff."""
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:aa\nsize 3\n"
    assert [(f.code, f.parks) for f in _read(pointer, path="data.bin")] == [("hygiene-lfs-pointer", True)]
    assert _read(pointer.replace("aa", "bb"), pointer, path="data.bin")
    assert _read(pointer, pointer, path="data.bin") == ()


_HALF = len(SECRET) // 2
LEAKED = {
    "as it is": SECRET,
    "base64": base64.b64encode(SECRET.encode()).decode(),
    "base64 inside of more": base64.b64encode(f"user:{SECRET}:x".encode()).decode(),
    "hex": SECRET.encode().hex(),
    "for a URL": quote(SECRET, safe=""),
    "backwards": SECRET[::-1],
    "split": f"{SECRET[:_HALF]}' + '{SECRET[_HALF:]}",
    "split without a sign": f"{SECRET[:_HALF]}' '{SECRET[_HALF:]}",
    "split over lines": f"{SECRET[:_HALF]}'\\\n    '{SECRET[_HALF:]}",
    "joined": "', '".join(SECRET),
}


@pytest.mark.parametrize("written", LEAKED.values(), ids=LEAKED.keys())
@pytest.mark.parametrize("path", ["shop.py", "config.js"])
def test_a_known_secret_blocks_in_every_form(written: str, path: str) -> None:
    """Whoever reads the proposal would have it."""
    found = _read(f"y = 1\nx = ('{written}')\n", "y = 1\n", path)
    assert [(finding.code, finding.blocks) for finding in found] == [("hygiene-secret", True)]


def test_a_secret_that_is_computed_is_found() -> None:
    """Constants are put together as Python would."""
    numbers = ", ".join(str(ord(sign)) for sign in SECRET)
    (found,) = _read(f"y = 1\nx = ''.join(map(chr, [{numbers}]))\n", "y = 1\n")
    assert (found.code, found.line, found.blocks) == ("hygiene-secret", 2, True)


def test_a_secret_in_bytes_or_in_a_name_is_found() -> None:
    """A picture and a file name are read by everybody too."""
    assert _read(b"\0" + SECRET.encode(), path="a.bin")[0].blocks
    assert _read("x = 1\n", path=f"{quote(SECRET, safe='')}.py")[0].blocks


def test_a_secret_that_was_there_is_not_added() -> None:
    """It is the base's trouble."""
    old = f"x = '{SECRET}'\n"
    assert _read(f"{old}y = 1\n", old) == ()


@given(modules())
def test_plain_programs_are_clean(source: str) -> None:
    """Nothing is found where nothing is."""
    assert _read(source) == ()


@given(st.text(st.characters(codec="utf-8"), min_size=8, max_size=30).filter(lambda text: len(text.strip()) > 7))
def test_any_secret_in_the_diff_blocks(secret: str) -> None:
    """Whatever it is made of, and the message never holds it."""
    found = read_hygiene([SourceChange("a.txt", None, f"x {secret} y".encode(), is_test=False)], [secret])
    assert any(finding.blocks for finding in found)
    assert not any(secret in finding.what for finding in found)


def test_code_that_is_pushed_out_of_sight_asks_for_a_person() -> None:
    """A diff is read in a window; blanks at the end of a line and a wide indentation hide nothing."""
    hidden = _read("def f(a):\n    pass" + " " * 200 + "; a = 0\n    return a\n")
    assert [(finding.line, finding.parks) for finding in hidden] == [(2, True)]
    assert _read("x = 1" + " " * 200 + "\n" + " " * 40 + "# wide\n") == ()
    assert [finding.parks for finding in _read("a" + " " * 200 + "b\n", path="notes.txt")] == []
