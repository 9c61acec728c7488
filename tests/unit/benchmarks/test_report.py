"""The page of the benchmarks: what it says about figures that are reached, missed or could not be measured."""

from __future__ import annotations

import pytest

from benchmarks.measure import Spread
from benchmarks.report import Figure, Report, number, page, quantity, table, verdict


def _figure(score: float, bound: float, *, at_least: bool = False) -> Figure:
    return Figure("speed", "a node", "a target", Spread(1, 1, 1), "ms", score=score, bound=bound, at_least=at_least)


def _report(*figures: Figure, quick: bool = False) -> Report:
    return Report(figures, {"processor": "two cores"}, {"Python": "3.11"}, "make bench", "2026-01-02", quick)


@pytest.mark.parametrize(
    ("figure", "said"),
    [
        (_figure(0.5, 0.5), "yes"),
        (_figure(0.6, 0.5), "**no**: 20 % over the target"),
        (_figure(10_000, 10_000, at_least=True), "yes"),
        (_figure(7_500, 10_000, at_least=True), "**no**: 25 % below the target"),
        (Figure("told", "only told", score=3.0), "–"),
        (Figure("broken", "broken", problem="it ended"), "not measured"),
    ],
)
def test_a_missed_target_says_how_far_it_is(figure: Figure, said: str) -> None:
    """A number without its distance to the promise is not read."""
    assert verdict(figure) == said


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.00707, "0.00707"), (0.461, "0.461"), (1.0, "1"), (19.14, "19.1"), (999.6, "1000"), (19142.4, "19,142")],
)
def test_numbers_keep_three_digits(value: float, shown: str) -> None:
    """More digits would promise a precision that a benchmark hasn't got."""
    assert number(value) == shown


def test_a_quantity_shows_its_spread_only_where_there_is_one() -> None:
    """The range tells whether two medians differ or only the machine was busy."""
    assert quantity(Spread(2, 2, 2), "ms") == "2 ms"
    assert quantity(Spread(2, 1, 3), "ms") == "2 ms (1 to 3)"
    assert quantity(None, "ms") == "–"


def test_a_row_has_ours_the_others_and_the_score() -> None:
    """Side by side is the point of the table."""
    figure = Figure(
        "effect", "an effect", "≤ 0.5 ×", Spread(1, 1, 1), "ms", {"Other|One": Spread(4, 3, 5)}, 0.25, "× Other", 0.5
    )
    row = table([figure]).splitlines()[-1]
    assert row == r"| an effect | ≤ 0.5 × | 1 ms | Other\|One 4 ms (3 to 5) | 0.25 × Other | yes |"


def test_the_page_names_what_was_missed_and_what_was_not_measured() -> None:
    """The first line has to say it, not a cell in the middle of the table."""
    text = page(_report(_figure(1, 2), _figure(3, 2), Figure("gone", "gone", problem="no database")))
    assert "1 of 2 targets reached; missed: speed; not measured: gone." in text
    assert "- **gone**: no database" in text


def test_the_page_says_how_it_was_made() -> None:
    """Whoever doubts a number has to be able to make it again."""
    text = page(_report(_figure(1, 2)))
    assert "`make bench` on 2026-01-02" in text
    assert "- processor: two cores" in text
    assert "smoke run" not in text


def test_a_smoke_run_does_not_pass_for_a_measurement() -> None:
    """Small sizes give numbers that look right and are not."""
    assert "smoke run" in page(_report(_figure(1, 2), quick=True))
