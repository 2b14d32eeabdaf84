"""The findings of an audit: those of its measures, and those about the audit as a whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from embaudit.finding import Finding, Rows
from embaudit.measures import MEASURES, MeasureSettings

# Stands in for the measure's name in findings about the audit itself.
AUDIT = "audit"


def find_all(
    settings: Mapping[str, MeasureSettings], rows: Rows, sample_corpora: Iterable[str]
) -> Iterator[tuple[str, Finding]]:
    """(measure, finding) pairs, in the order in which an audit runs the measures.

    Args:
        settings: by measure, for the measures that the audit ran.
        rows: the audit's tables.
        sample_corpora: names of the corpora taken from the embedded sample.
    """
    names = list(sample_corpora)
    if names:
        yield AUDIT, _sample_only(names)
    for name, measure in MEASURES.items():
        if name in settings:
            yield from ((name, finding) for finding in measure.find(rows, settings[name]))


def _sample_only(names: list[str]) -> Finding:
    return Finding(
        "not measured",
        f"How the checkpoint does on your texts is not known: {', '.join(names)} came from the embedded sample.",
        "The sample is enough to try embaudit out; conclusions need real corpora.",
        " ".join(("embaudit audit CHECKPOINT", *(f"--corpus {name}=FILE" for name in names))),
        name="real_corpora",
    )
