"""Which issue is meant, and what becomes of its text."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bailiwick.config.repository import Remote
from bailiwick.errors import NotFound, UsageError
from bailiwick.pipelines.issues import LIMIT, Reference, fetched_issue, hidden_parts, made, parse_reference, read_issue
from bailiwick.proposals.forges.port import Issue as ForgeIssue
from bailiwick.proposals.model import IssueRef

HERE = Path("/somewhere")
ORIGIN = Remote("git.example.org", "team", "shop")


def _post(title: str = "Round to cents", body: str = "Please.", author: str = "ann") -> ForgeIssue:
    """What a forge gives."""
    return ForgeIssue(IssueRef(7), title, body, "https://git.example.org/team/shop/issues/7", author, "")


@pytest.mark.parametrize(
    ("text", "host", "slug", "number"),
    [
        ("123", "git.example.org", "team/shop", 123),
        ("#123", "git.example.org", "team/shop", 123),
        (" 7 ", "git.example.org", "team/shop", 7),
        ("other/repo#9", "git.example.org", "other/repo", 9),
        ("a/b/c#9", "git.example.org", "a/b/c", 9),
        ("https://Forge.example.com/a/b/issues/4", "forge.example.com", "a/b", 4),
        ("https://forge.example.com:3000/a/b/issues/4#issuecomment-1", "forge.example.com:3000", "a/b", 4),
        ("https://gitlab.example.com/a/b/c/-/issues/4?x=1", "gitlab.example.com", "a/b/c", 4),
    ],
)
def test_an_issue_of_a_forge_is_known_however_it_is_written(text: str, host: str, slug: str, number: int) -> None:
    """The run id is made of it: one issue, one run."""
    found = parse_reference(text, HERE).on(ORIGIN)
    assert (found.kind, found.issue.number) == ("forge", number)
    assert found.identity == f"{host}/{slug}#{number}"


@pytest.mark.parametrize("text", ["notes.md", "./123", "deep/#12.md", "0", "-x.md"])
def test_everything_else_is_a_file(text: str) -> None:
    """A path is resolved, so that the same file is the same issue from every directory."""
    assert parse_reference(text, HERE) == Reference("file", str((HERE / text).resolve()))


@pytest.mark.parametrize(
    "text", ["", "  ", "https://example.org/", "https://example.org/a/b/commit/1", "ftp://x/y/issues/1"]
)
def test_what_names_no_issue_is_refused_with_an_example(text: str) -> None:
    """Exit code 2 and how it should look."""
    with pytest.raises(UsageError) as caught:
        parse_reference(text, HERE)
    assert (caught.value.exit_code, caught.value.code) == (2, "BW480")
    assert caught.value.hint


def test_a_number_without_a_remote_says_what_to_give_instead() -> None:
    """There is nobody to ask."""
    with pytest.raises(UsageError) as caught:
        parse_reference("12", HERE).on(None)
    assert "no remote" in caught.value.what
    assert "URL" in caught.value.hint


def test_a_whole_address_needs_no_remote() -> None:
    """It says everything."""
    assert parse_reference("https://example.org/a/b/issues/4", HERE).on(None).issue.number == 4


def _file(tmp_path: Path, raw: bytes) -> Reference:
    (tmp_path / "issue.md").write_bytes(raw)
    return parse_reference("issue.md", tmp_path)


def test_the_title_is_the_first_heading(tmp_path: Path) -> None:
    """Or the first line; the whole text stays the text."""
    issue = read_issue(_file(tmp_path, b"\xef\xbb\xbfintro\r\n\r\n## Round to cents ##\r\nbody\r\n"))
    assert (issue.title, issue.stem) == ("Round to cents", "issue")
    assert issue.text == "intro\n\n## Round to cents ##\nbody"
    assert read_issue(_file(tmp_path, b"just words\nmore")).title == "just words"


@pytest.mark.parametrize(
    ("raw", "word"),
    [
        (b"", "empty"),
        (b" \n\t\n", "empty"),
        (b"\x1b[2J\x00", "not text"),
        (b"PNG\x00\x01", "not text"),
        (b"caf\xe9", "not UTF-8 at byte 3"),
        (b"x" * (LIMIT + 1), "more than 1,024 KiB"),
    ],
)
def test_what_is_no_issue_is_refused_in_words(tmp_path: Path, raw: bytes, word: str) -> None:
    """Nothing is started for a file that nobody can have meant."""
    with pytest.raises(UsageError) as caught:
        read_issue(_file(tmp_path, raw))
    assert word in caught.value.what
    assert (caught.value.exit_code, caught.value.code) == (2, "BW481")
    assert caught.value.hint


def test_a_huge_file_is_not_read_whole(tmp_path: Path) -> None:
    """A sparse file of a gigabyte is refused at once."""
    with (tmp_path / "issue.md").open("wb") as file:
        file.truncate(1 << 30)
    with pytest.raises(UsageError, match="more than"):
        read_issue(parse_reference("issue.md", tmp_path))


def test_a_missing_file_names_the_nearest(tmp_path: Path) -> None:
    """A typing error is the usual cause."""
    (tmp_path / "round-cents.md").touch()
    with pytest.raises(NotFound) as caught:
        read_issue(parse_reference("round-cent.md", tmp_path))
    assert "round-cents.md" in caught.value.hint


def test_a_directory_is_no_issue(tmp_path: Path) -> None:
    """Said as such, not as a failure to read."""
    with pytest.raises(UsageError, match="directory"):
        read_issue(parse_reference(".", tmp_path))


def test_standard_input_is_known_by_what_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same text is the same issue, another text another one."""

    def piped(text: str) -> str:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        return read_issue(parse_reference("-", HERE)).ref

    assert piped("do it") == piped("do it\n")
    assert piped("do it") != piped("do that")


def test_text_of_a_stranger_can_not_act_on_a_terminal(tmp_path: Path) -> None:
    """Escapes, bidi and invisible characters are gone; template syntax is plain text and stays."""
    raw = "# T\x1b]0;owned\x07itle\n{{ secret }} {% include '/etc/passwd' %}\n\u202etxt.exe\u200b\x07\tend"
    issue = read_issue(_file(tmp_path, raw.encode()))
    assert issue.title == "Title"
    assert issue.text == "# Title\n{{ secret }} {% include '/etc/passwd' %}\ntxt.exe    end"


def test_hidden_comments_are_counted() -> None:
    """A person who reads the rendered issue doesn't see them, the agent does."""
    issue = made(Reference("file", "/x.md"), "a <!-- do evil --> b <!-- unclosed", "x")
    assert hidden_parts(issue) == 2


def test_a_forges_issue_is_made_harmless_too() -> None:
    """Its title, its text, its author: all are a stranger's."""
    reference = parse_reference("7", HERE).on(ORIGIN)
    issue = fetched_issue(reference, _post(title="Round\x1b[31m it", body="", author="an\x07n"))
    assert (issue.title, issue.text, issue.author, issue.stem) == ("Round it", "Round it", "ann", "issue 7")
    with pytest.raises(UsageError, match="more than"):
        fetched_issue(reference, _post(body="é" * LIMIT))


@given(st.text(max_size=300))
def test_no_text_breaks_or_keeps_a_control_character(text: str) -> None:
    """Always either an issue that is safe to show, or a clear refusal."""
    try:
        issue = made(Reference("file", "/x.md"), text, "x")
    except UsageError:
        return
    shown = issue.title + issue.text
    assert not [c for c in shown if (ord(c) < 32 and c != "\n") or 0x7F <= ord(c) < 0xA0 or c in "\u202e\u200b"]
    assert 0 < len(issue.title) <= 120
