"""One audit as one HTML file: no script, no network, readable on a phone and in the dark.

Everything in it that came with a checkpoint or a corpus (token strings, names, reasons) is text from strangers: the
template escapes by itself, and the page's own policy forbids scripts and loading anything.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import DictLoader, Environment, StrictUndefined, Template
from markupsafe import Markup

from embaudit.report.measure_sections import layer_section, length_section, socm_section, temperature_section
from embaudit.report.outcome_sections import check_section, gate_section, regression_section, settings_section
from embaudit.report.sticky_section import sticky_section
from embaudit.shown import visible

SECTIONS = (
    *(gate_section, regression_section, sticky_section, socm_section, layer_section, length_section),
    *(temperature_section, check_section, settings_section),
)


def render(facts: dict[str, Any]) -> str:
    """The page of an audit, from what ``read_audit`` gives."""
    sections = [section for make in SECTIONS if (section := make(facts)) is not None]
    (gate,) = facts["gate"] or [None]
    return _template().render(
        title=facts["source"] or facts["checkpoint_id"],
        # A file of this package: no text from outside.
        style=Markup(_own_file("page.css")),
        identity=_identity(facts),
        gate=gate,
        samples=", ".join(row["name"] for row in facts["corpora"] if row["source"] == "sample"),
        sections=sections,
    )


def _identity(facts: dict[str, Any]) -> list[tuple[str, str]]:
    """What was audited, when and on what; only what is known."""
    shape = [f"{facts['architecture']}"] if facts["architecture"] else []
    for name, what in (("layer_count", "layers"), ("heads", "heads"), ("hidden_size", "dimensions")):
        if facts[name]:
            shape.append(f"{facts[name]:,} {what}")
    if facts["parameters"]:
        millions = facts["parameters"] / 1e6
        shape.append(f"{millions:,.1f} million parameters" if millions >= 1 else f"{facts['parameters']:,} parameters")
    rows = [
        ("audit", facts["audit_id"]),
        ("checkpoint", facts["checkpoint_id"]),
        ("revision", facts["revision"]),
        ("model", ", ".join(shape)),
        ("pooling", facts["pooling"]),
        ("reads", f"{facts['max_length']:,} tokens" if facts["max_length"] else None),
        ("profile", facts["profile"]),
        ("finished", f"{facts['finished']:%Y-%m-%d %H:%M %Z}" if facts["finished"] else None),
        ("ran on", f"{facts['device']}, {facts['dtype']}, seed {facts['seed']}"),
    ]
    return [(name, value) for name, value in rows if value]


@cache
def _template() -> Template:
    environment = Environment(
        loader=DictLoader({"page": _own_file("page.html.j2")}),
        autoescape=True,
        finalize=_shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page")


def _shown(value: object) -> object:
    """What every ``{{ … }}`` of the template goes through before it is escaped."""
    return value if isinstance(value, Markup) else visible(value)


def _own_file(name: str) -> str:
    return files("embaudit.report").joinpath(name).read_text(encoding="utf-8")
