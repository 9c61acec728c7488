"""Untrusted text made harmless for a forge's Markdown, a commit message and a terminal. Pure.

Whatever an issue, an agent, a test or a file name says may be shown, but must not act: no mention that notifies, no
reference that links or closes an issue, no HTML, no hidden comment, no link, no character that hides or reorders text.
"""

from __future__ import annotations

import re

_SEQUENCES = re.compile(
    "\x1b\\[[0-?]*[ -/]*[@-~]|\x9b[0-?]*[ -/]*[@-~]"
    "|(?:\x1b[\\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\\\|\x9c)"
    "|\x1b[ -/]*[0-~]"
)
_BREAKS = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_HIDDEN = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x9f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
_SURROGATE = re.compile("[\ud800-\udfff]")
_MENTION = re.compile(r"@(?=[\w-])")
_REFERENCE = re.compile(r"(?<=[#!])(?=\d)|(?i:(?<=\bgh-)(?=\d))")
_URL = re.compile(r"(?<=[A-Za-z0-9]):(?=//)|(?i:\bmailto):")
_WWW = re.compile(r"(?i:\bwww)\.(?=\S)")
_HTML = re.compile(r"<(?=[!/?A-Za-z])")
_RUNS = re.compile("`+")


def printable(text: str) -> str:
    """The text with plain line ends and without terminal sequences, control, bidi and invisible characters."""
    text = _SEQUENCES.sub("", text)
    text = _HIDDEN.sub("", _BREAKS.sub("\n", text))
    return _SURROGATE.sub("\ufffd", text)


def one_line(text: str, most: int = 200) -> str:
    """The text as one line of at most `most` characters."""
    line = " ".join(printable(text[: 8 * most]).split())
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"


def inert(text: str) -> str:
    """The text with every mention, reference, address and tag broken up, visibly, so that none of them acts."""
    text = _MENTION.sub("@ ", text)
    text = _REFERENCE.sub(" ", text)
    text = _URL.sub(lambda m: f"{m[0][:-1]}[:]", text)
    text = _WWW.sub("www[.]", text)
    return _HTML.sub("< ", text)


def plain(text: str, most: int = 200) -> str:
    """One line that acts nowhere: for a commit's subject, a trailer, a pull request's title."""
    line = inert(one_line(text, most))
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"


def code(text: str, most: int = 200) -> str:
    """One line as a code span."""
    line = inert(one_line(text, most)) or " "
    fence = "`" * (max((len(run) for run in _RUNS.findall(line)), default=0) + 1)
    edge = " " if line[0] in "` " or line[-1] in "` " else ""
    return f"{fence}{edge}{line}{edge}{fence}"


def cell(text: str, most: int = 200) -> str:
    """One line as a code span in a table."""
    return code(text, most).replace("|", "\\|")


def block(text: str, most: int, *, info: str = "text") -> str:
    """Lines as a fenced block of at most about `most` characters, with a note where something was left out."""
    kept = inert(printable(text[: most + 1]))
    cut = len(text) > most
    if cut:
        kept = kept[:most].rpartition("\n")[0] or kept[:most]
    kept = "\n".join(line if len(line) <= 1000 else f"{line[:1000]}…" for line in kept.strip("\n").split("\n"))
    fence = "`" * max(3, max((len(run) for run in _RUNS.findall(kept)), default=0) + 1)
    note = f"\n*({len(text) - len(kept):,} more characters are left out)*\n" if cut else ""
    return f"{fence}{info}\n{kept}\n{fence}\n{note}"
