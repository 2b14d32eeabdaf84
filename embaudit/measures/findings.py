"""The findings of an audit: those of its measures, and what is true of it as a whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from embaudit.finding import Finding, Rows
from embaudit.measures import MEASURES, MeasureSettings

# What findings of the audit itself are filed under, in place of a measure.
AUDIT = "audit"


def find_all(
    settings: Mapping[str, MeasureSettings], rows: Rows, sample_corpora: Iterable[str]
) -> Iterator[tuple[str, Finding]]:
    """Every finding with the measure that it is of, in the order in which an audit runs them.

    Args:
        settings: of the measures that the audit ran, by their names.
        rows: the audit's tables.
        sample_corpora: names of the corpora that are the embedded sample.
    """
    names = list(sample_corpora)
    if names:
        yield AUDIT, _of_the_sample(names)
    for name, measure in MEASURES.items():
        if name in settings:
            yield from ((name, finding) for finding in measure.find(rows, settings[name]))


def _of_the_sample(names: list[str]) -> Finding:
    return Finding(
        "not measured",
        f"It is not known how the checkpoint does on your texts: {', '.join(names)} came from the embedded sample.",
        "Enough to see that it works, and what it does to these texts; conclusions need real corpora.",
        " ".join(("embaudit audit CHECKPOINT", *(f"--corpus {name}=FILE" for name in names))),
        name="real_corpora",
    )
