"""The text picture for terminals."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bailiwick.drawing.service import draw
from bailiwick.engine.graph import Branch, End, Node
from tests.unit.drawing import graphs

LOOP = """\
shop

● fetch  script scripts/fetch.sh
└┄ on_error → broken
◆ check  branch result.status
├─ ok → done
├─ again ↩ fetch
├─ >= 10 → done
└─ default → broken
■ done  terminal
✗ broken  fail
"""

SCOPES = """\
shop

≡ fan  parallel
├═ lint → ● lint  script scripts/lint.sh
│  → report
├═ tests → ≡ each  map each case of cases
│  └═ each → ● one  script scripts/one.sh
│     → sum
│  ● sum  script scripts/sum.sh
│  → report
└┄ on_error → ✗ broken  fail
● report  script scripts/report.sh
■ done  terminal
"""

PLAIN = """\
shop

* fetch  script scripts/fetch.sh
`. on_error -> broken
+ check  branch result.status
|- ok -> done
|- again <- fetch
|- >= 10 -> done
`- default -> broken
# done  terminal
! broken  fail
"""


def test_a_loop_points_back_and_shared_targets_stand_once() -> None:
    """What several ways lead to is drawn after all of them, not inside the first."""
    assert draw(graphs.loop(), "ascii") == LOOP


def test_scopes_are_indented_and_the_join_stands_outside() -> None:
    """A reader sees at a glance what runs at once and where it comes together."""
    assert draw(graphs.scopes(), "ascii") == SCOPES


def test_plain_uses_nothing_but_ascii() -> None:
    """Some terminals and logs show nothing else."""
    assert draw(graphs.loop(), "ascii", plain=True) == PLAIN


def test_a_node_that_nothing_leads_to_is_shown_apart() -> None:
    """It is most likely a mistake, so it has to be seen."""
    made = graphs.graph(graphs.script("a", "done"), End(id="done"), End(id="lost"))
    assert draw(made, "ascii").endswith("\nnot reached from 'a':\n■ lost  terminal\n")


def test_deep_alternatives_go_on_at_the_left_margin() -> None:
    """Thirty nested branches do not fit in 80 columns."""
    nodes: list[Node] = [End(id=f"e{i}") for i in range(30)]
    nodes[:0] = [Branch(id=f"b{i}", path="x", cases={"in": f"b{i + 1}"}, default=f"e{i}") for i in range(30)]
    text = draw(graphs.graph(*nodes, End(id="b30")), "ascii")
    assert max(map(len, text.splitlines())) <= 80
    assert "(below)" in text
    assert all(f"b{i} " in text for i in range(31))


@given(st.text(max_size=100), st.integers(40, 120))
def test_no_line_is_wider_than_asked_and_none_holds_control_characters(value: str, width: int) -> None:
    """A value of the file must not break the layout nor reach the terminal as an escape."""
    lines = draw(graphs.hostile(value), "ascii", width=width).splitlines()
    assert all(len(line) <= width and line.isprintable() for line in lines)


@pytest.mark.parametrize("value", graphs.HOSTILE)
def test_plain_stays_ascii_whatever_the_values(value: str) -> None:
    """The promise of `plain` holds for what people write, too."""
    assert draw(graphs.hostile(value + "é漢"), "ascii", plain=True).isascii()
