"""The index: found by words, always as the files are now, thrown away without a loss, never across scopes."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bailiwick.brain.frontmatter import write
from bailiwick.brain.index import LOOK_EVERY, Index
from bailiwick.brain.model import GLOBAL, STATUSES, Note, NoteQuery, Status, printable, seen_from
from bailiwick.brain.notes import NoteFolder
from bailiwick.brain.terms import fold, folded_words, indexed
from bailiwick.clock import ManualClock
from bailiwick.errors import UsageError
from tests.unit.brain.place import HERE, PLAIN, THERE, Mind, mind_at, run

WORDS = ("alpha", "beta", "gamma", "delta")
SYNTAX = (
    "AND",
    "alpha OR",
    "NEAR(a b)",
    "title:alpha",
    "facet : alpha",
    "alpha*",
    "^a",
    "-alpha",
    "a'; --",
)


@pytest.fixture
def mind(tmp_path: Path) -> Mind:
    """A brain with nothing in it."""
    return mind_at(tmp_path)


def _put(root: Path, number: int, text: str, scope: str = GLOBAL, status: Status = "approved") -> Note:
    note = Note(f"n-{number:08x}", f"note {number}", text, scope=scope, status=status, updated=float(number))
    file = root / "notes" / f"{number}.md"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(write(note))
    return note


notes_ = st.lists(
    st.tuples(
        st.lists(st.sampled_from(WORDS), min_size=1, max_size=4),
        st.sampled_from((GLOBAL, HERE, THERE, "")),
        st.sampled_from(STATUSES),
    ),
    max_size=8,
)


@settings(max_examples=25)
@given(
    notes=notes_,
    asked=st.lists(st.sampled_from((*WORDS, *SYNTAX)), max_size=3),
    statuses=st.lists(st.sampled_from(STATUSES), min_size=1, unique=True),
    broad=st.booleans(),
)
def test_no_question_ever_sees_a_note_of_another_scope(
    notes: list[tuple[list[str], str, Status]], asked: list[str], statuses: list[Status], broad: bool
) -> None:
    """Whatever is asked, however: own and global notes with the wanted statuses, exactly those that share a word."""
    root = Path(tempfile.mkdtemp())
    try:
        for number, (text, scope, status) in enumerate(notes):
            _put(root, number, " ".join(text), scope or "../nobody", status)
        index = Index(root / "index.db", NoteFolder(root), ManualClock().now)
        for scope in (GLOBAL, HERE, THERE):
            wanted = NoteQuery(" ".join(asked), seen_from(scope), tuple(statuses), 100, broad=broad)
            found = {one.note.id for one in index.search(wanted)}
            words = set(asked) & set(WORDS)
            may = {
                f"n-{number:08x}"
                for number, (_, owner, status) in enumerate(notes)
                if owner in (scope, GLOBAL) and status in statuses
            }
            must = {f"n-{number:08x}" for number, (text, _, _) in enumerate(notes) if words & set(text)} & may
            assert must <= found <= may
        index.close()
    finally:
        shutil.rmtree(root)


@pytest.mark.parametrize("text", SYNTAX)
def test_the_language_of_the_index_is_data(mind: Mind, text: str) -> None:
    """No character of a question is an operator, and none of them fails."""
    run(mind.brain.write("alpha and beta", title="x", scope=HERE))
    assert mind.titles(text) in ([], ["x"])


def test_title_and_tags_count_more_than_the_text(mind: Mind) -> None:
    """What a note is about comes before where a word only occurs."""
    filler = "word " * 30
    run(mind.brain.write(f"{filler} rounding", title="third"))
    run(mind.brain.write(filler, title="second", tags=["rounding"]))
    run(mind.brain.write(filler, title="rounding first"))
    assert mind.titles("Rounding!") == ["rounding first", "second", "third"]
    assert mind.titles("rounded", limit=1) == ["rounding first"]


@pytest.mark.parametrize("text", ["", "  ", "*", '"', "?!", "(", "{", "'; --", "_", "\u3000。"])
def test_a_question_without_words_is_told_so(mind: Mind, text: str) -> None:
    """Notes that match nothing must not look like an answer; all of them are another command's business."""
    run(mind.brain.write("x", title="one"))
    with pytest.raises(UsageError) as error:
        mind.titles(text)
    assert "brain list" in error.value.hint
    assert [found.note.title for found in run(mind.brain.list())] == ["one"]


@pytest.mark.parametrize(
    ("title", "query"),
    [
        ("测试时区", "测试"),
        ("测试时区", "时区"),
        ("测试时区", "区"),
        ("测试时区", "在测试时区里"),
        ("部署在星期二", "星期二 部署"),
        ("タイムゾーンのテスト", "テスト"),
        ("ﾃｽﾄ", "テスト"),
        ("시간대 테스트", "테스트"),
        ("使用pytest测试", "pytest"),
        ("größe", "GRÖSSE"),
        ("GRÖSSE", "größe"),
        ("größe", "groesse"),
        ("Groesse", "Größe"),
        ("größe", "grosse"),
        ("Straße", "strasse"),
        ("STRASSE", "straße"),
        ("Café", "CAFE"),
        ("o\u0308ffnen", "Öffnen"),
        ("İstanbul", "istanbul"),
        ("Ångström", "angstrom"),
        ("ΣΟΦΟΣ", "σοφος"),
        ("ﬁnish", "finish"),
    ],
)
def test_a_note_is_found_in_any_script_and_spelling(mind: Mind, title: str, query: str) -> None:
    """Signs without spaces between words, case, umlauts written with one letter or with two."""
    run(mind.brain.write("other", title="something else"))
    run(mind.brain.write("text", title=title))
    assert mind.titles(query) == [printable(title)]
    run(mind.brain.write(f"in the text: {title}", title="second"))
    assert set(mind.titles(query)) == {printable(title), "second"}


@given(st.text(st.characters(codec="utf-8"), max_size=12))
def test_what_is_indexed_and_what_is_asked_always_meet(text: str) -> None:
    """Every word of a question about a text stands in the index of that text, also in other case."""
    there = set(indexed(text).replace("_", " ").split()) | set(folded_words(indexed(text)))
    assert set(folded_words(text)) <= there
    assert fold(fold(text)) == fold(text)


@given(st.text(st.characters(min_codepoint=0x4E00, max_codepoint=0x9FFF), min_size=1, max_size=9), st.data())
def test_every_part_of_a_chinese_title_finds_it(title: str, data: st.DataObject) -> None:
    """Each pair and each sign is a word of the index."""
    begin = data.draw(st.integers(0, len(title) - 1))
    part = title[begin : data.draw(st.integers(begin + 1, len(title)))]
    assert set(folded_words(part)) <= set(indexed(title).split())


def test_what_a_person_does_in_the_folder_is_noticed(mind: Mind) -> None:
    """Made, edited in place, renamed and removed by hand: the next question knows."""
    file = mind.puts("deploys.md", PLAIN)
    assert mind.titles("tuesdays") == ["Deploys"]
    file.write_text(PLAIN.replace("Tuesdays", "Mondays"))
    assert (mind.titles("tuesdays"), mind.titles("mondays")) == ([], ["Deploys"])
    file.rename(file.with_name("other.md"))
    assert [found.note.path for found in run(mind.brain.query("mondays"))] == ["other.md"]
    (mind.root / "other.md").unlink()
    assert mind.titles("mondays") == []


def test_a_large_brain_never_answers_with_what_is_no_longer_so(mind: Mind, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two looks at every file, what is found is looked at again; new files are seen by their folder."""
    monkeypatch.setattr("bailiwick.brain.index.LARGE", 1)
    mind.puts("deploys.md", PLAIN)
    other = mind.puts("other.md", "nothing about it\n")
    assert mind.titles("deploys") == ["Deploys"]
    (mind.root / "deploys.md").write_text("---\nstatus: stale\n---\n# Deploys\n")
    assert mind.titles("deploys") == []
    mind.puts("new/deploys.md", PLAIN)
    assert mind.titles("deploys") == ["Deploys"]
    other.write_text("deploys too\n")
    mind.clock.advance(LOOK_EVERY + 1)
    assert len(mind.titles("deploys")) == 2


def _damaged(file: Path) -> None:
    file.write_bytes(b"not a database at all" * 100)


def _older(file: Path) -> None:
    db = apsw.Connection(str(file))
    db.execute("DROP TABLE words; CREATE TABLE old (x); PRAGMA user_version = 99")
    db.close()


def _gone(file: Path) -> None:
    shutil.rmtree(file.parent)


def _holed(file: Path) -> None:
    db = apsw.Connection(str(file))
    db.execute("DROP TABLE words")
    db.close()


@pytest.mark.parametrize("harm", [_damaged, _older, _gone, _holed])
def test_an_index_that_cannot_be_used_is_made_anew_without_a_word(mind: Mind, harm: object) -> None:
    """It holds nothing that the files don't."""
    run(mind.brain.write("alpha", title="x"))
    assert mind.titles("alpha") == ["x"]
    mind.brain.close()
    for suffix in ("-wal", "-shm"):
        (mind.brain.index.file.with_name(mind.brain.index.file.name + suffix)).unlink(missing_ok=True)
    assert callable(harm)
    harm(mind.brain.index.file)
    assert mind.titles("alpha") == ["x"]
    assert run(mind.brain.get("n-")).commit


def test_a_cache_that_cannot_be_written_costs_time_only(mind: Mind) -> None:
    """The index is kept in memory then."""
    mind.brain.index.file.parent.parent.mkdir(parents=True)
    mind.brain.index.file.parent.write_text("a file where the folder should be")
    run(mind.brain.write("alpha", title="x"))
    assert mind.titles("alpha") == ["x"]


def test_a_common_word_beside_a_rare_one_costs_nothing(mind: Mind, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where more would match than can be ranked, the rarest words decide."""
    monkeypatch.setattr("bailiwick.brain.terms.MOST_ROWS", 3)
    for number in range(5):
        mind.puts(f"{number}.md", f"# {number}\ncommon" + (" rare" if number == 2 else ""))
    assert mind.titles("common rare") == ["2"]
    assert len(mind.titles("common")) == 5
