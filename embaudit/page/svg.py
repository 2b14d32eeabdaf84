"""Line charts as inline SVG: no script, no network, colours from the page's own."""

from __future__ import annotations

from collections.abc import Callable

from markupsafe import Markup

from embaudit.page.model import Chart
from embaudit.shown import visible

WIDTH, HEIGHT = 640, 220
LEFT, RIGHT, TOP, BOTTOM = 44, 12, 12, 34
TICKS = 4
# Named in the style sheet, for light and for dark.
COLOURS = ("one", "two", "three", "four", "five", "six")


def line_chart(chart: Chart) -> Markup:
    """Lines over one x axis, with a legend; nothing where there is no line of two points."""
    shown = {name: sorted(points) for name, points in chart.lines.items() if len(points) > 1}
    if not shown:
        return Markup()
    xs = [x for points in shown.values() for x, _ in points]
    ys = [y for points in shown.values() for _, y in points]
    low, high = min(0.0, *ys), max(ys)
    if high == low:
        high = low + 1.0

    def place(x: float, y: float) -> tuple[float, float]:
        across = (x - min(xs)) / ((max(xs) - min(xs)) or 1.0)
        return LEFT + across * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - (y - low) / (high - low) * (
            HEIGHT - TOP - BOTTOM
        )

    parts = [_axis(low, high, min(xs), max(xs), place)]
    for index, (_, points) in enumerate(shown.items()):
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(*point) for point in points))
        parts.append(Markup('<polyline class="line {}" points="{}"/>').format(COLOURS[index % len(COLOURS)], path))
    legend = Markup("").join(
        Markup('<span class="key {}">{}</span>').format(COLOURS[index % len(COLOURS)], visible(name))
        for index, name in enumerate(shown)
    )
    return Markup(
        '<figure><figcaption>{}</figcaption><svg viewBox="0 0 {} {}" role="img" aria-label="{}">{}'
        '<text class="label" x="{}" y="{}" text-anchor="end">{}</text></svg><div class="legend">{}</div></figure>'
    ).format(
        visible(chart.title),
        WIDTH,
        HEIGHT,
        visible(chart.title),
        Markup("").join(parts),
        WIDTH - RIGHT,
        HEIGHT - 2,
        visible(chart.x_label),
        legend,
    )


def _axis(
    low: float, high: float, first: float, last: float, place: Callable[[float, float], tuple[float, float]]
) -> Markup:
    """Horizontal grid lines with their values, and the two ends of the x axis."""
    parts = []
    for step in range(TICKS + 1):
        value = low + (high - low) * step / TICKS
        _, y = place(first, value)
        parts.append(
            Markup(
                '<line class="grid" x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/>'
                '<text class="label" x="{}" y="{:.1f}" text-anchor="end">{}</text>'
            ).format(LEFT, WIDTH - RIGHT, y, y, LEFT - 6, y + 4, f"{value:.2f}")
        )
    for value, anchor in ((first, "start"), (last, "end")):
        x, _ = place(value, low)
        parts.append(
            Markup('<text class="label" x="{:.1f}" y="{}" text-anchor="{}">{}</text>').format(
                x, HEIGHT - BOTTOM + 16, anchor, f"{value:g}"
            )
        )
    return Markup("").join(parts)
