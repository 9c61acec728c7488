"""How a text lies in a file: encoding, byte order mark, line endings, whether its last line is ended. Pure."""

from __future__ import annotations

import codecs
import io
import tokenize
from collections import Counter
from dataclasses import dataclass

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_CRLF, _LF, _CR = "\r\n", "\n", "\r"


@dataclass(frozen=True, slots=True)
class _Form:
    """The text of a file and how it was written."""

    text: str
    encoding: str
    mark: bytes


def in_the_form_of(old: bytes, new: bytes, path: str) -> bytes:
    """The new content of a file, written as the old one was; unchanged where either is no text."""
    before, after = _read(old, path), _read(new, path)
    if before is None or after is None or not before.text or not after.text:
        return new
    text = _with_line_ends(after.text, before.text)
    try:
        return before.mark + text.encode(before.encoding)
    except UnicodeEncodeError:
        return after.mark + text.encode(after.encoding)


def _read(data: bytes, path: str) -> _Form | None:
    mark, encoding = next(((mark, name) for mark, name in _MARKS if data.startswith(mark)), (b"", ""))
    rest = data[len(mark) :]
    if b"\0" in rest and not encoding.startswith("utf-16"):
        return None
    for name in (encoding,) if encoding else ("utf-8", _declared(rest, path)):
        try:
            return _Form(rest.decode(name), name, mark)
        except UnicodeDecodeError:
            continue
    return None


def _declared(data: bytes, path: str) -> str:
    """The encoding that a Python file names in its first lines; for others the one in which every byte is a letter."""
    if path.endswith(".py"):
        try:
            return tokenize.detect_encoding(io.BytesIO(data).readline)[0]
        except (SyntaxError, LookupError):
            pass
    return "latin-1"


def _with_line_ends(new: str, old: str) -> str:
    """The lines of `new` ended as those of `old` are: a line that was there as it was, others as most are."""
    ends = Counter(end for _, end in _lines(old) if end)
    if not ends:
        return new
    usual = max((_LF, _CRLF, _CR), key=lambda end: ends[end])
    known = {} if len(ends) == 1 else {line: end for line, end in _lines(old) if end}
    ended = "".join(line + known.get(line, usual) for line, _ in _lines(new))
    if old.endswith((_LF, _CR)):
        return ended
    return ended.removesuffix(_lines(ended)[-1][1])


def _lines(text: str) -> list[tuple[str, str]]:
    """Lines and how each is ended; the last may not be."""
    found = []
    for whole in io.StringIO(text, newline=""):
        line = whole.rstrip("\r\n")
        found.append((line, whole[len(line) :]))
    return found
