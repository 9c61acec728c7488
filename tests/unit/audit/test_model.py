"""The chain itself: whatever is done to its lines without the key is seen."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from bailiwick.audit.model import GENESIS, AuditEntry, ChainHead, inspect, make_entry, read_entry, read_head
from bailiwick.ids import Json

KEY = b"k" * 32
VALUES: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text('aä"\\\n'),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=2), inner, max_size=3),
    max_leaves=6,
)


def chain_of(count: int, key: bytes = KEY, data: Json = None) -> list[AuditEntry]:
    made: list[AuditEntry] = []
    head = ChainHead()
    for number in range(count):
        fields = {"time": 1.5 + number, "kind": "k", "actor": "a", "data": data}
        made.append(make_entry(key, head, fields))
        head = made[-1].head
    return made


def lines_of(entries: list[AuditEntry]) -> list[bytes]:
    return [entry.line()[:-1] for entry in entries]


@given(data=VALUES, time=st.floats(0, 1e11), kind=st.text("abc.", min_size=1), actor=st.text('aä "'))
def test_an_entry_reads_back_as_it_was_written(data: Json, time: float, kind: str, actor: str) -> None:
    """The seal is over the one text of an entry; a value with two texts would break the chain by itself."""
    entry = make_entry(KEY, ChainHead(), {"time": time, "kind": kind, "actor": actor, "data": data})
    assert read_entry(entry.line()[:-1]) == entry
    assert inspect(KEY, [entry.line()[:-1]]).findings == []


@given(data=st.data(), count=st.integers(1, 8))
def test_any_other_order_or_choice_of_lines_is_found_with_the_head(data: st.DataObject, count: int) -> None:
    """Delete, repeat, reorder, truncate, put in a foreign line: only the lines as they were pass."""
    entries = chain_of(count)
    foreign = lines_of(chain_of(2, b"x" * 32))
    lines = lines_of(entries)
    others = data.draw(st.lists(st.sampled_from([*lines, *foreign]), max_size=count + 2))
    found = inspect(KEY, others, (entries[-1].head,))
    assert (found.findings == []) == (others == lines)


@given(place=st.integers(0, 2000), byte=st.integers(0, 255))
def test_any_changed_byte_is_found(place: int, byte: int) -> None:
    """Also one that leaves the JSON the same: a blank, another order of keys, an escape."""
    raw = bytearray(b"\n".join(lines_of(chain_of(4, data={"a": "text"}))))
    place %= len(raw)
    changed = raw[place] != byte
    raw[place] = byte
    assert bool(inspect(KEY, bytes(raw).split(b"\n")).findings) == changed


def test_a_rewritten_line_of_equal_meaning_is_an_edit() -> None:
    """JSON has many texts for one value; the chain has one."""
    lines = lines_of(chain_of(3))
    lines[1] = json.dumps(json.loads(lines[1])).encode()
    (finding,) = inspect(KEY, lines).findings
    assert (finding.kind, finding.line) == ("edited", 2)


def test_what_was_done_is_told_apart() -> None:
    """The person who reads it has to know what to look for."""
    entries = chain_of(4)
    one, two, three, four = lines_of(entries)
    foreign = lines_of(chain_of(1, b"x" * 32))[0]

    def told(*lines: bytes) -> list[tuple[str, int]]:
        return [(finding.kind, finding.line) for finding in inspect(KEY, lines).findings]

    assert told(one, two, three, four) == []
    assert told(one, foreign, three, four) == [("edited", 2)]
    assert told(one, foreign, two, three) == [("inserted", 2)]
    assert told(one, three, four) == [("deleted", 0)]
    assert told(one, three, two, four) == [("moved", 3)]
    assert told(one, two, two, three) == [("inserted", 3)]
    assert told(one, two, foreign) == [("edited", 3)]
    assert told(foreign, foreign) == [("wrong_key", 0)]


def test_a_chain_that_was_cut_and_went_on_is_seen_only_by_a_kept_head() -> None:
    """Whoever has the key can write a consistent chain again; that is what heads kept elsewhere are for."""
    entries = chain_of(4)
    short = entries[:2]
    other = make_entry(KEY, short[-1].head, {"time": 9.0, "kind": "k", "actor": "a", "data": "other"})
    again = lines_of([*short, other])
    assert inspect(KEY, again).findings == []
    assert [f.kind for f in inspect(KEY, again, (entries[2].head,)).findings] == ["rewritten"]
    assert [f.kind for f in inspect(KEY, again, (entries[3].head,)).findings] == ["truncated"]
    assert inspect(KEY, again, (entries[1].head, ChainHead())).findings == []
    spliced = lines_of([*short, other, entries[3]])
    assert [(f.kind, f.line) for f in inspect(KEY, spliced).findings] == [("rewritten", 4)]


def test_a_head_is_one_line_that_reads_back() -> None:
    """People copy it into a ticket and back."""
    head = chain_of(3)[-1].head
    assert str(head) == f"bw-audit:1:3:{head.mac}"
    assert read_head(f"  noted: {head}.\n") == head
    assert read_head(f"{ChainHead()}\n{head}\n") == head
    assert (str(ChainHead()), read_head("bw-audit:1:3:abc"), read_head("")) == (f"bw-audit:1:0:{GENESIS}", None, None)
