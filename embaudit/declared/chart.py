"""Charts as data: marks in panels, with a caption on how to read them.

A measure declares what to draw (``embaudit/measures/NAME/page.py``), and ``embaudit.pages.html`` draws it. All text is
plain and untrusted (it may come from a checkpoint), and is never interpreted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, NamedTuple

# Named colours, defined in the page's style sheet for light and dark mode.
Tone = Literal["one", "two", "three", "four", "five", "six", "ink", "soft", "ok", "look", "problem"]
PALETTE: tuple[Tone, ...] = ("one", "two", "three", "four", "five", "six")
Place = float | int | str | None


class Mark(NamedTuple):
    """One datum.

    Attributes:
        x, y: position in the units of the panel's axes. A rule with only one of them spans the panel.
        x2, y2: end position: an interval's or band's upper end, a cell's opposite corner.
        series: determines the colour and connects points to lines; empty for the layer's tone.
        label: the tooltip; for text, the text itself.
        weight: opacity of a cell, 0 to 1.
    """

    x: Place = None
    y: Place = None
    x2: Place = None
    y2: Place = None
    series: str = ""
    label: str = ""
    weight: float = 1.0


@dataclass(frozen=True)
class Layer:
    """Marks of one kind, drawn over previous layers.

    Attributes:
        kind: ``rule`` is a straight line (an interval, a limit, a fit), ``rect`` a cell or bar.
        tone: colour of marks without a series.
        is_data: whether its marks are figures, to be listed in the table below the chart, rather than reference lines.
        size: scale factor of points and lines.
        is_outlined: whether points have a dark outline, to stand out from others of the same colour.
        align: position of text relative to its point.
    """

    kind: Literal["line", "area", "point", "rule", "rect", "text"]
    marks: Sequence[Mark]
    tone: Tone = "one"
    is_dashed: bool = False
    is_data: bool = True
    size: float = 1.0
    is_outlined: bool = False
    align: Literal["left", "center", "right"] = "left"


@dataclass(frozen=True)
class Axis:
    """One axis of a panel.

    Attributes:
        format: d3 number format (``.2f``, ``,d``, ``.0%``).
        domain: its ends; by default those of the data.
        categories: ordered names, for an axis without numbers.
        has_zero: whether it always includes zero.
        has_labels: whether it has any labels.
    """

    title: str = ""
    format: str = ""
    domain: tuple[float, float] | None = None
    categories: Sequence[str] = ()
    is_log: bool = False
    has_zero: bool = False
    has_labels: bool = True


@dataclass(frozen=True)
class Panel:
    """One pair of axes; panels without a width (in pixels) share the page's."""

    layers: Sequence[Layer]
    x: Axis
    y: Axis
    title: str = ""
    width: int | None = None
    height: int | None = None


@dataclass(frozen=True)
class Chart:
    """Panels in rows, with a caption.

    Attributes:
        title: what it shows.
        caption: how to read it: what marks and lines are, and what would be good or bad.
        rows: panels side by side, row by row; a chart without figures is not drawn.
        tones: colours of series with a meaning; the others get the palette's in order.
        gap: pixels between panels with shared axes; by default as many as titles and labels need.
        more: the command that lists all rows of the table below the chart.
    """

    kind: ClassVar[str] = "chart"
    title: str
    caption: str
    rows: Sequence[Sequence[Panel]]
    tones: Mapping[str, Tone] = field(default_factory=dict)
    gap: int | None = None
    more: str = ""

    @property
    def panels(self) -> list[Panel]:
        return [panel for row in self.rows for panel in row]

    @property
    def is_empty(self) -> bool:
        return not any(layer.marks for panel in self.panels for layer in panel.layers if layer.is_data)

    @property
    def alt(self) -> str:
        return f"{self.title}. {self.caption}"

    @property
    def colours(self) -> dict[str, Tone]:
        """Each series with its colour, in order of appearance."""
        names = dict.fromkeys(
            mark.series for panel in self.panels for layer in panel.layers for mark in layer.marks if mark.series
        )
        rest = iter(PALETTE * (len(names) // len(PALETTE) + 1))
        return {name: self.tones[name] if name in self.tones else next(rest) for name in names}

    def records(self) -> list[dict[str, Any]]:
        """Every figure as a row: panel, series, coordinates, and label."""
        return [
            {"panel": panel.title, **mark._asdict()}
            for panel in self.panels
            for layer in panel.layers
            if layer.is_data
            for mark in layer.marks
        ]


def interval(x: Place, low: float | None, high: float | None, series: str = "") -> list[Mark]:
    """The rule of a 95 % interval; empty if there is none."""
    return [] if low is None or high is None else [Mark(x=x, y=low, y2=high, series=series)]
