"""Renders a page as one HTML file without scripts or network access, for phones and dark mode, too.

Everything from a checkpoint or corpus (token strings, names, reasons) is untrusted: the template escapes automatically,
and the page's content security policy forbids scripts and loading anything.

Renders charts as inline SVG through Vega-Lite, without scripts or links and in the page's colours.

Specifications are written directly (Altair would only generate them, and takes a second to import). Colours are
variables of the style sheet, so one picture serves light and dark mode.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from functools import cache, lru_cache, partial
from importlib.metadata import version
from importlib.resources import files
from itertools import chain
from math import isfinite
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from jinja2 import DictLoader, Environment, StrictUndefined, Template
from markupsafe import Markup

from embaudit.declared.chart import Axis, Chart, Layer, Mark, Panel
from embaudit.declared.document import Page, figures
from embaudit.system.installed import content_key
from embaudit.words.masking import masked_output
from embaudit.words.sentences import visible

# Width of the page's column in pixels, shared by the panels of a row.
WIDTH, HEIGHT = 580, 220
# Horizontal and vertical space between panels, for titles and axis labels.
BETWEEN = (66, 80)
# The reader's font may be wider than the one Vega measured labels in. All pictures have the same width, so that their
# text has the same size.
PADDING = {"left": 18, "right": 10, "top": 6, "bottom": 4}
FULL_WIDTH = 690
POINT, LINE = 28, 1.8
# Attributes that the page does not need, such as Vega's own names, are removed.
KEPT = {
    *("d", "transform", "x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "width", "height", "viewBox"),
    *("fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray", "opacity"),
    *("text-anchor", "font-size", "font-weight"),
}
DEFAULTS = {("opacity", "1"), ("stroke-width", "0"), ("transform", "translate(0,0)")}
PICTURE = re.compile(r'<svg data-key="(?P<key>[0-9a-f]{16})" [^>]*>.*?</svg>', re.DOTALL)
DECIMALS = re.compile(r"(\d+\.\d{2})\d+")
CONFIG = {
    "aria": False,
    "background": None,
    "font": "sans-serif",
    "view": {"stroke": None},
    "axis": {
        "domainColor": "var(--line)",
        "gridColor": "var(--line)",
        "labelColor": "var(--soft)",
        "labelFontSize": 11,
        "labelLimit": 220,
        "ticks": False,
        "labelPadding": 5,
        "titleColor": "var(--soft)",
        "titlePadding": 10,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
    },
    "title": {
        "color": "var(--ink)",
        "fontSize": 12,
        "fontWeight": "normal",
        "anchor": "start",
        "frame": "group",
        "offset": 8,
    },
}


def svg(chart: Chart, earlier: Mapping[str, Markup]) -> Markup:
    """The picture; empty if there is nothing to draw.

    Args:
        earlier: existing pictures by key, to be reused (``pictures``).
    """
    if chart.is_empty:
        return Markup()
    wording = json.dumps(specification(chart), sort_keys=True)
    key = content_key(drawn_by=_drawing_version(), specification=wording)
    picture = earlier.get(key) or _draw(wording, key)
    return Markup('<div class="wide picture" role="img" aria-label="{}">{}</div>').format(visible(chart.alt), picture)


def pictures(page: str) -> dict[str, Markup]:
    """The pictures of an existing page by key, so that repeated audits need not redraw them."""
    return {found["key"]: Markup(found[0]) for found in PICTURE.finditer(page)}


def specification(chart: Chart) -> dict[str, Any]:
    """The chart as a Vega-Lite specification."""
    colours = {visible(name): f"var(--{tone})" for name, tone in chart.colours.items()}
    across, down = BETWEEN if chart.gap is None else (chart.gap, chart.gap)
    # Vega-Lite rejects panels without marks. The others in the row keep their width.
    drawn = [[_panel(panel, len(row), colours) for panel in row if _has_marks(panel)] for row in chart.rows]
    rows = [row for row in drawn if row]
    # Align the frames, regardless of labels.
    spec: dict[str, Any] = {"config": CONFIG, "padding": PADDING, "bounds": "flush"}
    columns = len(rows[0])
    if all(len(row) <= columns for row in rows):
        panels = list(chain.from_iterable(rows))
        return {**spec, "concat": panels, "columns": columns, "spacing": {"column": across, "row": down}}
    stacked = [row[0] if len(row) == 1 else {"hconcat": row, "bounds": "flush", "spacing": across} for row in rows]
    return {**spec, "vconcat": stacked, "spacing": down}


def _has_marks(panel: Panel) -> bool:
    return any(layer.marks for layer in panel.layers)


def _panel(panel: Panel, count: int, colours: dict[str, str]) -> dict[str, Any]:
    layers = [layer for layer in panel.layers if layer.marks]
    return {
        "width": panel.width or (WIDTH - (count - 1) * BETWEEN[0]) // count,
        "height": panel.height or HEIGHT,
        **({"title": visible(panel.title)} if panel.title else {}),
        "layer": list(chain.from_iterable(_layer(layer, panel, colours) for layer in layers)),
    }


def _layer(layer: Layer, panel: Panel, colours: dict[str, str]) -> list[dict[str, Any]]:
    """One layer; lines get points in a second one, for tooltips."""
    spec = _marks(layer, panel, colours)
    if layer.kind != "line" or not any(mark.label for mark in layer.marks):
        return [spec]
    return [spec, _marks(Layer("point", layer.marks, layer.tone, size=layer.size * 0.6), panel, colours)]


def _marks(layer: Layer, panel: Panel, colours: dict[str, str]) -> dict[str, Any]:
    encoding: dict[str, Any] = {}
    for name, axis in (("x", panel.x), ("y", panel.y)):
        if any(getattr(mark, name) is not None for mark in layer.marks):
            encoding[name] = _axis(name, axis)
        if any(getattr(mark, f"{name}2") is not None for mark in layer.marks):
            encoding[f"{name}2"] = {"field": f"{name}2"}
    if any(mark.series for mark in layer.marks):
        scale = {"domain": list(colours), "range": list(colours.values())}
        encoding["color"] = {"field": "series", "type": "nominal", "scale": scale, "legend": None}
    if any(mark.weight != 1 for mark in layer.marks):
        encoding["opacity"] = {
            **{"field": "weight", "type": "quantitative", "legend": None},
            "scale": {"domain": [0, 1], "range": [0, 1]},
        }
    is_labelled = any(mark.label for mark in layer.marks)
    if layer.kind == "text":
        encoding["text"] = {"field": "label", "type": "nominal"}
    elif is_labelled and layer.kind != "line":
        encoding["description"] = {"field": "label", "type": "nominal"}
    return {
        "data": {"values": [_datum(mark) for mark in layer.marks]},
        "mark": _mark(layer, "description" in encoding),
        "encoding": encoding,
    }


def _datum(mark: Mark) -> dict[str, Any]:
    return {
        name: visible(value) if isinstance(value, str) else value
        for name, value in mark._asdict().items()
        if value not in (None, "") and not (isinstance(value, float) and not isfinite(value))
    }


def _mark(layer: Layer, is_described: bool) -> dict[str, Any]:
    mark: dict[str, Any] = {"type": layer.kind, "color": f"var(--{layer.tone})", "aria": is_described}
    if layer.kind in ("line", "rule"):
        mark["strokeWidth"] = LINE * layer.size
    if layer.kind == "point":
        mark |= {"filled": True, "opacity": 0.85, "size": POINT * layer.size}
        mark |= {"stroke": "var(--ink)", "strokeWidth": 1.5, "opacity": 1} if layer.is_outlined else {}
    if layer.kind == "area":
        mark |= {"opacity": 0.15}
    if layer.kind == "text":
        mark |= {
            "align": layer.align,
            "fontSize": 11,
            "dx": {"left": 6, "center": 0, "right": -6}[layer.align],
            "dy": -6,
        }
    if layer.is_dashed:
        mark["strokeDash"] = [5, 4]
    return mark


def _axis(name: str, axis: Axis) -> dict[str, Any]:
    labels: dict[str, Any] = {"labels": axis.has_labels, "title": visible(axis.title) or None}
    if axis.format:
        labels["format"] = axis.format
    if axis.categories:
        labels |= {"grid": name == "y", "labelAngle": 0}
        return {
            "field": name,
            "type": "nominal",
            "sort": None,
            "scale": {"domain": [visible(category) for category in axis.categories]},
            "axis": labels,
        }
    labels |= {"grid": axis.has_labels and name == "y", "tickCount": 5}
    scale: dict[str, Any] = {"zero": axis.has_zero, "nice": axis.domain is None}
    if axis.is_log:
        scale = {"type": "log", "nice": False}
    if axis.domain:
        scale["domain"] = list(axis.domain)
    return {"field": name, "type": "quantitative", "scale": scale, "axis": labels}


@lru_cache(maxsize=64)
def _draw(wording: str, key: str) -> Markup:
    import vl_convert

    root = ElementTree.fromstring(vl_convert.vegalite_to_svg(wording, vl_version="6.4"))
    width, height = (round(float(side)) for side in root.attrib["viewBox"].split()[2:])
    for element in root:
        _clean(element)
    inside = "".join(ElementTree.tostring(element, encoding="unicode") for element in root)
    return Markup(f'<svg data-key="{key}" viewBox="0 0 {max(width, FULL_WIDTH)} {height}">{inside}</svg>')


@cache
def _drawing_version() -> list[str]:
    """What a picture depends on in addition to its specification: this module and the library."""
    own = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()
    return [own, version("vl-convert-python")]


def _clean(element: ElementTree.Element) -> None:
    """Remove namespaces and empty shapes, and turn marks' descriptions into titles, which browsers show."""
    element.tag = element.tag.rpartition("}")[2]
    said = element.attrib.get("aria-label")
    kept = {name: DECIMALS.sub(r"\1", value) for name, value in element.attrib.items() if name in KEPT}
    element.attrib.clear()
    element.attrib.update({name: value for name, value in kept.items() if (name, value) not in DEFAULTS})
    for child in list(element):
        _clean(child)
        is_shape = child.tag == "path" and child.attrib.get("d", "") not in ("", "M0,0h0v0h0Z")
        is_painted = {"fill", "stroke"} & child.attrib.keys()
        if (child.tag == "path" and not (is_shape and is_painted)) or (child.tag == "g" and not len(child)):
            element.remove(child)
    if said is not None and element.tag != "g":
        ElementTree.SubElement(element, "title").text = said


# Beside options, a command's arguments are NAMES, quoted, names-with-hyphens or words with a sign in them: of "embaudit
# why says where", only the first two are typed.
VALUE = r"(?:[A-Z]+\b|'[^']*'|[^\s,;()]*[/.=:][^\s,;()]*[^\s,;.:()]|[a-z]*\d[\w.]*)"
ARGUMENT = rf"(?:--?[\w.=/-]+|[a-z]+-[a-z-]+|{VALUE})"
TYPED = re.compile(
    rf"`[^`]+`|\bembaudit (?:query [a-z-]+|[a-z][a-z-]*)(?: {ARGUMENT})*|"
    rf"(?<![\w-])--[a-z][a-z-]*(?:[ =]{VALUE})?"
)


def pieces(advice: str) -> list[tuple[str, bool]]:
    """Its parts in order, and whether each is typed."""
    found: list[tuple[str, bool]] = []
    end = 0
    for typed in TYPED.finditer(advice):
        found += [(advice[end : typed.start()], False), (typed[0].strip("`"), True)]
        end = typed.end()
    return [(text, is_typed) for text, is_typed in [*found, (advice[end:], False)] if text]


def render(page: Page, earlier: str = "") -> str:
    """The complete HTML file.

    Args:
        earlier: the previous version of the file, to reuse unchanged pictures.
    """
    return masked_output(_template("page").render(page=page, svg=partial(svg, earlier=pictures(earlier))))


def render_summary(page: Page) -> str:
    """Findings and identity as a fragment for a notebook, with scoped styles."""
    return masked_output(_template("notebook").render(page=page))


@cache
def _template(name: str) -> Template:
    environment = Environment(
        loader=DictLoader({name: _own_file(f"{name}.html.j2")}),
        autoescape=True,
        finalize=_shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # A file of this package, so trusted.
    environment.filters["pieces"] = pieces
    environment.globals |= {"style": Markup(_own_file("page.css")), "figures": figures}
    return environment.get_template(name)


def _shown(value: object) -> object:
    """Applied to every ``{{ … }}`` of the template before escaping."""
    return value if isinstance(value, Markup) else visible(value)


def _own_file(name: str) -> str:
    return files("embaudit.pages").joinpath(name).read_text(encoding="utf-8")
