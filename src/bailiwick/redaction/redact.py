"""Known secrets are kept out of the journal, logs, transcripts and proposals. For accidents; it is not a boundary.

Every secret is looked for in the forms in which programs print it: as it is, in base64 (at each of the three places
where it can begin in what was encoded), in hex, quoted for a URL, escaped for JSON. All forms are found in one pass:
the text is read as words of four bytes at a fixed step, and a form of seven bytes or more holds at least one such word,
wherever it begins. So the time hardly depends on how many secrets there are.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator
from urllib.parse import quote, quote_plus

from bailiwick.ids import Json

COVER = "[redacted]"
SHORTEST = 6
"""Shorter secrets are not looked for: they would be found in every other word."""
SHORTEST_LINE = 16
"""A line of a secret of several lines is a secret itself from this length on."""
_WORD = 4
_BLOCK = 4096
"""Words that are looked at in one go."""
_COVER = COVER.encode()
_JSON_STARTS = ("{", "[", '"')

Span = tuple[int, int]


class Redactor:
    """Takes secrets out of texts. Two secrets that overlap, or stand side by side, are covered as one."""

    __slots__ = ("_forms", "_short", "_table", "_words")

    def __init__(self, secrets: Iterable[str]) -> None:
        self._forms = forms_of(secrets)
        self._short = tuple(form for form in self._forms if len(form) < 2 * _WORD - 1)
        self._table = _word_table(form for form in self._forms if len(form) >= 2 * _WORD - 1)
        self._words = frozenset(self._table)

    def __bool__(self) -> bool:
        return bool(self._forms)

    def text(self, text: str) -> str:
        """The text with every secret covered. A JSON mapping, list or string stays JSON, and so do lines of them."""
        if not self._forms:
            return text
        data = text.encode("utf-8", "surrogatepass")
        spans = self.spans(data)
        if not spans:
            return text
        covered = _covered(data, spans).decode("utf-8", "surrogatepass")
        return self._still_json(text, covered)

    def json(self, value: Json) -> Json:
        """A JSON value with every secret covered in its texts, names and numbers; the value itself without secrets."""
        if not self._forms:
            return value
        match value:
            case str():
                return self.text(value)
            case dict():
                return {self.text(str(name)): self.json(part) for name, part in value.items()}
            case list() | tuple():
                return [self.json(part) for part in value]
            case int() | float() if not isinstance(value, bool):
                return COVER if self.spans(str(value).encode()) else value
            case _:
                return value

    def spans(self, data: bytes) -> list[Span]:
        """Where secrets are, in order; none touches another."""
        found = [*self._long_spans(data), *self._short_spans(data)]
        return _merged(found) if found else found

    def _short_spans(self, data: bytes) -> Iterator[Span]:
        for form in self._short:
            at = data.find(form)
            while at >= 0:
                yield at, at + len(form)
                at = data.find(form, at + 1)

    def _long_spans(self, data: bytes) -> Iterator[Span]:
        if not self._words:
            return
        words = memoryview(data)[: len(data) // _WORD * _WORD].cast("I")
        for first in range(0, len(words), _BLOCK):
            block = words[first : first + _BLOCK].tolist()
            if not self._words.isdisjoint(block):
                yield from self._verified(data, block, first)

    def _verified(self, data: bytes, block: list[int], first: int) -> Iterator[Span]:
        known, table = self._words, self._table
        for place, word in enumerate(block, first):
            if word in known:
                for form, offset in table[word]:
                    start = place * _WORD - offset
                    if start >= 0 and data.startswith(form, start):
                        yield start, start + len(form)

    def _still_json(self, text: str, covered: str) -> str:
        """What was JSON is JSON: covering can break it where a secret holds a quote, a backslash or only digits."""
        if not text.lstrip().startswith(_JSON_STARTS):
            return covered
        if _is_json(text):
            return covered if _is_json(covered) else self._document(text)
        lines = text.split("\n")
        if len(lines) < 2 or not all(_is_json(line) for line in lines if line.strip()):
            return covered
        kept = "\n".join(self.text(line) if line.strip() else line for line in lines)
        return covered if self.spans(kept.encode("utf-8", "surrogatepass")) else kept

    def _document(self, text: str) -> str:
        made = json.dumps(self.json(json.loads(text)), ensure_ascii=False)
        return json.dumps(COVER) if self.spans(made.encode("utf-8", "surrogatepass")) else made


def forms_of(secrets: Iterable[str]) -> tuple[bytes, ...]:
    """Every form in which these secrets may be printed."""
    found: dict[bytes, None] = {}
    for secret in secrets:
        for text in _parts(secret):
            found.update(dict.fromkeys(_forms(text)))
    return tuple(form for form in found if len(form) >= SHORTEST)


def _parts(secret: str) -> Iterator[str]:
    """The secret without the blanks around it, and each long line of one that has several."""
    whole = secret.strip()
    if len(whole) < SHORTEST or whole in COVER:
        return
    yield whole
    lines = whole.splitlines()
    if len(lines) > 1:
        yield "\r\n".join(lines)
        yield "\n".join(lines)
        for line in lines:
            part = line.strip()
            if len(part) >= SHORTEST_LINE and not part.startswith("-----"):
                yield part


def _forms(text: str) -> Iterator[bytes]:
    raw = text.encode("utf-8", "surrogatepass")
    yield raw
    yield raw.hex().encode()
    yield raw.hex().upper().encode()
    yield from _encoded(raw)
    for safe in ("", "/"):
        for quoted in (quote(raw, safe=safe), quote_plus(raw, safe=safe)):
            yield quoted.encode()
            yield _lower_escapes(quoted).encode()
    for ascii_only in (True, False):
        once = json.dumps(text, ensure_ascii=ascii_only)[1:-1]
        for written in (once, once.replace("/", "\\/"), json.dumps(once, ensure_ascii=ascii_only)[1:-1]):
            yield written.encode("utf-8", "surrogatepass")


def _lower_escapes(quoted: str) -> str:
    head, *rest = quoted.split("%")
    return head + "".join(f"%{part[:2].lower()}{part[2:]}" for part in rest)


def _encoded(raw: bytes) -> Iterator[bytes]:
    """Its base64 in both alphabets: with its end, and what it makes certain wherever it begins in other bytes."""
    for alphabet in (base64.b64encode, base64.urlsafe_b64encode):
        whole = alphabet(raw)
        yield whole
        yield whole.rstrip(b"=")
        for before in range(3):
            first = -(-before * 8 // 6)
            last = (before + len(raw)) * 8 // 6
            yield alphabet(bytes(before) + raw)[first:last]


def _word_table(forms: Iterable[bytes]) -> dict[int, list[tuple[bytes, int]]]:
    """By word: the forms that hold it, and where. The first four places of a form are enough for a step of four."""
    table: dict[int, list[tuple[bytes, int]]] = {}
    for form in forms:
        for offset in range(_WORD):
            word = memoryview(form[offset : offset + _WORD]).cast("I")[0]
            table.setdefault(word, []).append((form, offset))
    return table


def _merged(spans: list[Span]) -> list[Span]:
    spans.sort()
    out = [spans[0]]
    for start, end in spans[1:]:
        if start <= out[-1][1]:
            out[-1] = (out[-1][0], max(end, out[-1][1]))
        else:
            out.append((start, end))
    return out


def _covered(data: bytes, spans: list[Span]) -> bytes:
    out, at = bytearray(), 0
    for start, end in spans:
        out += data[at:start] + _COVER
        at = end
    return bytes(out + data[at:])


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
