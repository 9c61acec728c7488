"""Reading what was asked: which issue is meant, and its text, which is data from a stranger and made harmless to show.

Harmless means: no terminal sequences, no control, bidi or invisible characters. Template syntax needs no care here,
since values are never templates; a fake end of the quotation can't be guessed, since its mark is random.
"""

from __future__ import annotations

import difflib
import re
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from bailiwick.config.repository import Remote
from bailiwick.errors import NotFound, Place, UsageError
from bailiwick.pipelines.model import IssueText, title_of
from bailiwick.proposals.forges.port import Issue as ForgeIssue
from bailiwick.proposals.model import IssueRef, parse_issue
from bailiwick.terminal.output import clean

LIMIT = 1 << 20
"""Bytes that an issue may have."""
NO_SUCH = "BW480"
NOT_TEXT = "BW481"

_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Reference:
    """Which issue a person means: a file, standard input, or one of a forge."""

    kind: Literal["file", "stdin", "forge"]
    text: str
    issue: IssueRef = field(default_factory=lambda: IssueRef(0))

    def on(self, remote: Remote | None) -> Reference:
        """A forge's issue with what is left out taken from the repository's remote."""
        if self.kind != "forge" or self.issue.site:
            return self
        if remote is None:
            raise UsageError(
                f"{self.text!r} names an issue of a forge, and this repository has no remote to ask",
                hint="give the issue as a Markdown file, or its whole URL",
                code=NO_SUCH,
            )
        whole = replace(
            self.issue,
            owner=self.issue.owner or remote.owner,
            name=self.issue.name or remote.name,
            site=f"https://{remote.host}",
        )
        return replace(self, issue=whole)

    @property
    def identity(self) -> str:
        """What makes it the same issue when it is named again, whatever its text says."""
        return f"{self.issue.site.partition('://')[2].lower()}/{self.issue}" if self.kind == "forge" else self.text


def parse_reference(text: str, cwd: Path) -> Reference:
    """Which issue is meant. A number is one of the repository's forge: a file of that name is given as `./123`."""
    given = text.strip()
    if not given:
        raise UsageError(
            "no issue is named", hint="give a Markdown file, `-`, 123, owner/repo#123 or a URL", code=NO_SUCH
        )
    if given == "-":
        return Reference("stdin", "-")
    if (found := parse_issue(given)) is not None:
        return Reference("forge", given, found)
    if "://" in given:
        raise UsageError(
            f"{clean(given)!r} is not the address of an issue",
            hint="an issue's address looks like https://example.org/owner/repo/issues/123",
            code=NO_SUCH,
        )
    return Reference("file", str((cwd / given).resolve()))


def read_issue(reference: Reference) -> IssueText:
    """The issue of a file or of standard input; raises `UsageError` for what can't have been meant."""
    if reference.kind == "stdin":
        raw = sys.stdin.buffer.read(LIMIT + 1)
        return made(reference, _text(raw, "standard input"), "standard input")
    path = Path(reference.text)
    return made(reference, _text(_bytes(path), str(path)), path.stem)


def fetched_issue(reference: Reference, found: ForgeIssue) -> IssueText:
    """The issue that a forge gave."""
    if len(found.body.encode("utf-8", "replace")) > LIMIT:
        raise _too_big(reference.text)
    title = clean(found.title).strip() or f"issue {reference.issue.number}"
    text = harmless(found.body) or title
    return IssueText(
        reference.identity,
        stem=f"issue {reference.issue.number}",
        title=title_of(title, title),
        text=text,
        url=clean(found.url),
        author=clean(found.author),
    )


def made(reference: Reference, text: str, name: str) -> IssueText:
    """An issue from its text; one without a name of its own is known by what it says."""
    body = harmless(text)
    if not body:
        raise UsageError("the issue is empty", hint="write what is to be done", place=Place(name), code=NOT_TEXT)
    title = title_of(body, name)
    if reference.kind == "stdin":
        from bailiwick.ids import digest

        return IssueText(f"stdin:{digest(body)[:16]}", title, title, body)
    return IssueText(reference.identity, name, title, body)


def hidden_parts(issue: IssueText) -> int:
    """How many HTML comments the text has: an agent reads them, a person who looks at the rendered issue doesn't."""
    return len(_COMMENT.findall(issue.text))


def _bytes(path: Path) -> bytes:
    try:
        if path.is_dir():
            raise UsageError(
                "the issue is a directory", hint="give the Markdown file in it", place=Place(str(path)), code=NO_SUCH
            )
        with path.open("rb") as file:
            return file.read(LIMIT + 1)
    except FileNotFoundError:
        raise NotFound(
            f"there is no file {path.name!r}", hint=_near(path), place=Place(str(path)), code=NO_SUCH
        ) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        hint = "make it readable, or give another file"
        raise UsageError(
            f"the issue can't be read: {reason}", hint=hint, place=Place(str(path)), code=NO_SUCH
        ) from None


def _near(path: Path) -> str:
    try:
        names = [item.name for item in path.parent.iterdir()][:2000]
    except OSError:
        names = []
    near = difflib.get_close_matches(path.name, names, 2)
    return f"did you mean {' or '.join(near)}?" if near else "give a Markdown file, `-`, 123, owner/repo#123 or a URL"


def _text(raw: bytes, name: str) -> str:
    if len(raw) > LIMIT:
        raise _too_big(name)
    if b"\0" in raw:
        raise UsageError("the issue is not text", hint="give a Markdown file", place=Place(name), code=NOT_TEXT)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(
            f"the issue is not UTF-8 at byte {error.start}",
            hint="save it as UTF-8",
            place=Place(name),
            code=NOT_TEXT,
        ) from None


def _too_big(name: str) -> UsageError:
    return UsageError(
        f"the issue has more than {LIMIT // 1024:,} KiB",
        hint="cut it down to what is to be done, and let it name the files where the rest is",
        place=Place(name),
        code=NOT_TEXT,
    )


def harmless(text: str) -> str:
    """A stranger's text with plain line ends and without what could act on a terminal or hide from a reader."""
    plain = clean(text.replace("\r\n", "\n").replace("\r", "\n").replace("\t", "    "), lines=True)
    return "\n".join(line.rstrip() for line in plain.split("\n")).strip()
