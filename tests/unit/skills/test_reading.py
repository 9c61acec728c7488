"""A SKILL.md and everything that can be wrong with it, each with its place."""

from __future__ import annotations

import jsonschema_rs
import pytest

from bailiwick.errors import InputInvalid, Problem
from bailiwick.lang.schemas import schema_fault
from bailiwick.skills.model import Argument, Skill
from bailiwick.skills.reading import MAX_BODY, read_skill, skill_schema

HEAD = "---\nname: notes\ndescription: Takes notes.\n"
GOOD = f"{HEAD}---\n\n# Notes\n\nTake them.\n"


def read(text: str | bytes, name: str = "notes") -> tuple[Skill, list[Problem]]:
    """Read a text as the SKILL.md of a folder."""
    return read_skill(text if isinstance(text, bytes) else text.encode(), "s/SKILL.md", name, "person")


def ours(block: str) -> str:
    """A skill with these lines below `bailiwick`."""
    return f"{HEAD}bailiwick:\n{block}---\nBody.\n"


def test_a_skill_as_agent_clis_write_it_is_read() -> None:
    """Name, description, text: what people have already is used as it is."""
    skill, notes = read(
        f"{HEAD}license: MIT\nmetadata: {{a: 1}}\nallowed-tools: Read, Grep\n---\n\n# Notes\n\nTake them.\n\n"
    )
    assert (skill.name, skill.description, skill.body) == ("notes", "Takes notes.", "# Notes\n\nTake them.")
    assert (skill.arguments, skill.chain, skill.local_only, skill.writes) == (None, None, False, False)
    assert notes == []


def test_what_bailiwick_adds_is_read() -> None:
    """Arguments, models and limits that an author wants, without a line of code."""
    block = (
        "  chain: [a, b]\n  local_only: true\n  phase: draft\n  writes: true\n  files: log\n"
        "  output: {type: object}\n"
        "  arguments:\n    - {name: project_root, kind: path, doc: P., required: true}\n    - {name: log, doc: L.}\n"
    )
    skill, _ = read(ours(block))
    assert skill.chain == ("a", "b")
    assert (skill.local_only, skill.phase, skill.writes, skill.files) == (True, "draft", True, "log")
    assert skill.output == {"type": "object"}
    assert skill.arguments == (
        Argument("project_root", "path", "P.", required=True),
        Argument("log", "text", "L.", required=False),
    )


def test_a_byte_order_mark_and_windows_line_ends_change_nothing() -> None:
    """Editors add them; the digest tells what is said, not how it was saved."""
    other = b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode()
    assert read(other)[0] == read(GOOD)[0]


def test_the_digest_follows_every_part() -> None:
    """What was told to a model can be recognised again."""
    plain = read(GOOD)[0].digest
    assert read(GOOD.replace("Take them", "Take all"))[0].digest != plain
    assert read(GOOD.replace("Takes", "Took"))[0].digest != plain
    assert read_skill(GOOD.encode(), "other", "notes", "bundled", {"more": "x"})[0].digest != plain
    assert read_skill(GOOD.encode(), "other", "notes", "bundled")[0].digest == plain


def test_an_unknown_key_is_reported_and_no_error() -> None:
    """Other tools have keys of their own; a slip of the pen should still be seen."""
    skill, notes = read(f"{HEAD}descripton: x\n---\nBody.\n")
    assert skill.name == "notes"
    assert [(str(note.place), note.warning, note.hint) for note in notes] == [("s/SKILL.md:4:1", True, "'description'")]


BAD = [
    ("# Notes\n", "BW160", "1:1", "no front matter"),
    ("", "BW160", "1:1", "no front matter"),
    ("---\nname: notes\n", "BW160", "1:1", "not closed"),
    ("---\n---\nBody.\n", "BW160", "1:1", "empty"),
    ("---\n- a\n---\nBody.\n", "BW109", "2:1", "a mapping is expected"),
    ("---\nname: [\n---\nBody.\n", "BW104", "", "YAML"),
    ("---\nname: notes\nname: notes\ndescription: x\n---\nBody.\n", "BW105", "3:1", "given twice"),
    ("---\ndescription: x\n---\nBody.\n", "BW111", "2:1", "'name' is missing"),
    ("---\nname: notes\n---\nBody.\n", "BW111", "2:1", "'description' is missing"),
    ("---\nname: notes\ndescription: '  '\n---\nBody.\n", "BW110", "3:14", "not empty"),
    (f"---\nname: notes\ndescription: {'x' * 1025}\n---\nBody.\n", "BW110", "3:14", "1,025 characters"),
    ("---\nname: other\ndescription: x\n---\nBody.\n", "BW161", "2:7", "'other' and its folder 'notes'"),
    ("---\nname: Notes\ndescription: x\n---\nBody.\n", "BW110", "2:7", "expected a name"),
    (f"{HEAD}---\n \n\n", "BW162", "5:1", "no discipline"),
    (f"{HEAD}---\n{'x' * (MAX_BODY + 1)}\n", "BW162", "5:1", "more than 65,536"),
    (ours("  chian: [a]\n"), "BW112", "5:3", "'chian' is not known"),
    (ours("  chain: []\n"), "BW110", "5:10", "not empty"),
    (ours("  writes: yes\n"), "BW110", "5:11", "true or false"),
    (ours("  output: 3\n"), "BW110", "5:11", "a JSON Schema"),
    (ours("  output: {type: nonsense}\n"), "BW143", "5:11", "not a valid JSON Schema"),
    (ours("  arguments:\n    - {name: model, doc: x}\n"), "BW163", "6:7", "'model' already"),
    (ours("  arguments:\n    - {name: a, doc: x}\n    - {name: a, doc: x}\n"), "BW163", "7:7", "named twice"),
    (ours("  arguments:\n    - {name: A-b, doc: x}\n"), "BW110", "6:14", "a name such as"),
    (ours("  arguments:\n    - {name: a, doc: x, kind: file}\n"), "BW110", "6:31", "one of text"),
    (ours("  files: log\n"), "BW163", "5:10", "no argument is named 'log'"),
    (ours("  writes: true\n  arguments: [{name: a, doc: x}]\n"), "BW163", "6:14", "needs the argument 'project_root'"),
    (f"{HEAD}bailiwick: 3\n---\nBody.\n", "BW110", "4:12", "a mapping (bailiwick)"),
    (f"{HEAD}---\nbo\x07dy\n", "BW102", "5:3", "control character"),
]


@pytest.mark.parametrize(("text", "code", "place", "said"), BAD, ids=[f"{b[1]}-{b[3][:20]}" for b in BAD])
def test_each_fault_has_its_code_and_its_place(text: str, code: str, place: str, said: str) -> None:
    """Whoever wrote the file goes to the line and mends it; nothing is guessed and nothing is half used."""
    with pytest.raises(InputInvalid) as caught:
        read(text)
    found = [problem for problem in caught.value.problems() if not problem.warning]
    assert [problem.code for problem in found] == [code]
    assert said in found[0].what
    assert str(found[0].place).startswith(f"s/SKILL.md:{place}")
    assert found[0].hint


def test_bytes_that_are_no_text_are_refused_with_their_place() -> None:
    """A picture that was saved as SKILL.md is no discipline."""
    with pytest.raises(InputInvalid) as caught:
        read(GOOD.encode() + b"\xff")
    assert caught.value.place is not None
    assert (caught.value.code, caught.value.place.line) == ("BW102", 9)


def test_several_faults_are_told_in_one_go() -> None:
    """Mending one at a time is tedious."""
    with pytest.raises(InputInvalid) as caught:
        read("---\nname: other\nbailiwick: {chian: [a]}\n---\n")
    assert {problem.code for problem in caught.value.problems()} == {"BW111", "BW112", "BW161", "BW162"}


def test_editors_are_told_the_same_as_the_check() -> None:
    """The schema for editors comes from the table that checks the file."""
    schema = skill_schema()
    assert schema_fault(schema) == ""
    validator = jsonschema_rs.validator_for(schema)
    assert validator.is_valid({"name": "notes", "description": "x", "license": "MIT", "version": 1})
    assert not validator.is_valid({"name": "Notes", "description": "x"})
    assert not validator.is_valid({"name": "notes", "description": "x", "bailiwick": {"chian": []}})
