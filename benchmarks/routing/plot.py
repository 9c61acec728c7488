"""Line charts as SVG, readable on a light and on a dark page: no background, middle tones, a dash pattern per line."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 760, 330
LEFT, RIGHT, TOP, BOTTOM = 70, 190, 46, 52
INK = "#7a838d"
STYLES = {
    "always the strongest": ("#8b8f98", "2 4"),
    "the chain": ("#e0700f", "9 4"),
    "oracle": ("#16a34a", "5 3"),
}
"""Colour and dashes by policy."""
LABEL_STEP = 16.0


@dataclass(frozen=True, slots=True)
class PlotLine:
    """One line: its label and its points."""

    label: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Chart:
    """One panel. `mark` is a horizontal line that matters, with its words; `low` and `high` fix the y axis."""

    title: str
    across: str
    up: str
    lines: Sequence[PlotLine]
    mark: tuple[float, str] | None = None
    low: float | None = None
    high: float | None = None


def draw(charts: Sequence[Chart]) -> str:
    """The charts below each other, as one SVG document; the same charts give the same text."""
    height = HEIGHT * len(charts)
    look = f'role="img" font-family="system-ui, sans-serif" font-size="12" fill="{INK}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" {look}>',
        f"<title>{escape('; '.join(chart.title for chart in charts))}</title>",
    ]
    for number, chart in enumerate(charts):
        parts += [f'<g transform="translate(0 {number * HEIGHT})">', *_panel(chart), "</g>"]
    return "\n".join([*parts, "</svg>"]) + "\n"


@dataclass(frozen=True, slots=True)
class _Axes:
    x: tuple[float, float]
    y: tuple[float, float]

    def across(self, value: float) -> float:
        return LEFT + (value - self.x[0]) / (self.x[1] - self.x[0]) * (WIDTH - LEFT - RIGHT)

    def up(self, value: float) -> float:
        return HEIGHT - BOTTOM - (value - self.y[0]) / (self.y[1] - self.y[0]) * (HEIGHT - TOP - BOTTOM)


def _panel(chart: Chart) -> list[str]:
    axes = _axes(chart)
    parts = [f'<text x="{LEFT}" y="24" font-size="15" font-weight="600">{escape(chart.title)}</text>']
    for value in ticks(*axes.y):
        y = axes.up(value)
        parts.append(_path([(LEFT, y), (WIDTH - RIGHT, y)], INK, 'stroke-opacity="0.25"'))
        parts.append(_text(LEFT - 8, y + 4, _shown(value), "end"))
    parts += [_text(axes.across(at), HEIGHT - BOTTOM + 18, _shown(at), "middle") for at in ticks(*axes.x)]
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, chart.across, "middle"))
    parts.append(_text(LEFT, 40, chart.up, "start"))
    if chart.mark:
        y = axes.up(chart.mark[0])
        parts.append(_path([(LEFT, y), (WIDTH - RIGHT, y)], INK, 'stroke-width="1.5"'))
        parts.append(_text(LEFT + 6, y - 5, chart.mark[1], "start"))
    for line in chart.lines:
        colour, dashes = STYLES.get(line.label, (INK, ""))
        points = [(axes.across(x), axes.up(y)) for x, y in line.points]
        parts.append(_path(points, colour, f'stroke-width="2.2" stroke-dasharray="{dashes}"'))
    return parts + _labels(chart, axes)


def _labels(chart: Chart, axes: _Axes) -> list[str]:
    """Each line's name at its end, pushed apart where they would meet."""
    wanted = sorted((axes.up(line.points[-1][1]), line.label) for line in chart.lines)
    parts, above = [], -math.inf
    for y, label in wanted:
        above = max(y, above + LABEL_STEP)
        colour = STYLES.get(label, (INK, ""))[0]
        parts.append(_text(WIDTH - RIGHT + 8, above + 4, label, "start", colour))
    return parts


def _axes(chart: Chart) -> _Axes:
    xs = [x for line in chart.lines for x, _ in line.points]
    ys = [y for line in chart.lines for _, y in line.points] + ([chart.mark[0]] if chart.mark else [])
    low = min(ys) if chart.low is None else chart.low
    high = max(ys) if chart.high is None else chart.high
    gap = (high - low) * 0.05 or 1.0
    return _Axes((min(xs), max(xs)), (low if chart.low is not None else low - gap, high + gap))


def ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Round values between two bounds, at most `most` steps of 1, 2 or 5 times a power of ten."""
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    count = math.floor(high / step + 1e-9) - first
    return [round((first + number) * step, 10) for number in range(count + 1)]


def _shown(value: float) -> str:
    return f"{value:,.0f}" if value == round(value) else f"{value:g}"


def _text(x: float, y: float, text: str, anchor: str, colour: str = INK) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{escape(text)}</text>'


def _path(points: Sequence[tuple[float, float]], colour: str, more: str) -> str:
    body = " ".join(f"{'L' if number else 'M'}{x:.1f} {y:.1f}" for number, (x, y) in enumerate(points))
    return f'<path d="{body}" fill="none" stroke="{colour}" {more}/>'
