"""What a chart is made of, as data: marks in panels, with the words that say how to read it.

A measure declares what to draw (``embaudit/measures/NAME/page.py``), and ``embaudit.page.svg`` draws it. All text is
plain, and may come with a checkpoint: it is drawn, never obeyed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, NamedTuple

# Colours by name; the page's style sheet says which, for light and for dark.
Tone = Literal["one", "two", "three", "four", "five", "six", "ink", "soft", "ok", "look", "problem"]
PALETTE: tuple[Tone, ...] = ("one", "two", "three", "four", "five", "six")
Place = float | int | str | None


class Mark(NamedTuple):
    """One datum.

    Attributes:
        x, y: where it is, in the units of the panel's axes. A rule that has only one of them crosses the panel.
        x2, y2: where it ends: an interval's or band's upper end, a cell's far corner.
        series: what gives it its colour, and joins points to lines; empty for the layer's own tone.
        label: what is said of it where a pointer rests on it; of text, what is written.
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
    """Marks of one kind, drawn over those of the layers before.

    Attributes:
        kind: ``rule`` is a straight line: an interval, a limit, a fit; ``rect`` a cell or a bar.
        tone: the colour of marks without a series.
        is_data: whether its marks are figures, which the table below the chart has, and not lines to read them by.
        size: of points and lines, as a factor.
        is_outlined: whether points have a dark rim, to be seen among others of their colour.
        align: where text stands against its point.
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
        format: of its numbers, in the notation of d3 (``.2f``, ``,d``, ``.0%``).
        domain: its ends; those of the data without it.
        categories: names in their order, where it has no numbers.
        has_zero: whether it begins at zero whatever the data do.
        has_labels: whether it is written on at all.
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
    """One pair of axes; panels share the width of the page where theirs, in pixels, is not given."""

    layers: Sequence[Layer]
    x: Axis
    y: Axis
    title: str = ""
    width: int | None = None
    height: int | None = None


@dataclass(frozen=True)
class Chart:
    """Panels in rows, and how to read them.

    Attributes:
        title: what it shows.
        caption: how to read it: what a mark is, what the lines are, what would be good or bad.
        rows: panels beside each other, row by row; a chart without any figure is not drawn.
        tones: colours of series that mean something; the others get the palette's in their order.
        gap: pixels between panels that share their axes; otherwise there are as many as titles and labels need.
        more: the command that lists what the table below the chart has no room for.
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
        """Each series with its colour, in the order in which they come."""
        names = dict.fromkeys(
            mark.series for panel in self.panels for layer in panel.layers for mark in layer.marks if mark.series
        )
        rest = iter(PALETTE * (len(names) // len(PALETTE) + 1))
        return {name: self.tones[name] if name in self.tones else next(rest) for name in names}

    def records(self) -> list[dict[str, Any]]:
        """Every figure in it as a row: panel, series, coordinates, and what is said of it."""
        return [
            {"panel": panel.title, **mark._asdict()}
            for panel in self.panels
            for layer in panel.layers
            if layer.is_data
            for mark in layer.marks
        ]


def interval(x: Place, low: float | None, high: float | None, series: str = "") -> list[Mark]:
    """The rule of a 95 % interval; nothing where there is none."""
    return [] if low is None or high is None else [Mark(x=x, y=low, y2=high, series=series)]
