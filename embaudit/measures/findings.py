"""The findings of an audit: those of its measures, and those about the audit as a whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from embaudit.declared.rule import Finding, Rows, Rule
from embaudit.measures import MEASURES, MeasureSettings

REAL_CORPORA = Rule(
    "real_corpora",
    "corpora",
    reason="`not measured` if any corpus is the embedded sample: a sample of a few texts is for trying out embaudit",
)
DROPPED_ROWS = Rule(
    "dropped_rows",
    "`corpus`: (`undecodable` + `broken` + `blank`) / `read` of any corpus",
    look=0.01,
    is_share=True,
    look_if="above {look}",
    reason="a hundredth moves no figure by more than its interval; what is lost beyond that is seldom lost at random "
    "(all lines with an accent of a Latin-1 file). The empty lines of a `.txt` file are no rows. The reason of the "
    "first broken row is given",
)
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
    if dropping := [found for row in rows("corpus") if (found := _dropped(row)) and found.share > DROPPED_ROWS.look]:
        yield AUDIT, _dropped_rows(sorted(dropping, key=lambda one: (-one.share, one.words)))
    for name, measure in MEASURES.items():
        if name in settings:
            yield from ((name, finding) for finding in measure.parts().findings(rows, settings[name]))


class _Dropped(NamedTuple):
    """What a corpus lost when it was read."""

    share: float
    words: str
    is_encoding: bool


def _dropped(corpus: dict[str, Any]) -> _Dropped | None:
    """None if there were no rows."""
    # Between the lines of a plain text there are empty ones, which are no rows; a document without text is one.
    is_plain = str(corpus["source"]).lower().removesuffix(".gz").endswith(".txt")
    blank = 0 if is_plain else corpus["blank"]
    counts = {"not UTF-8": corpus["undecodable"], "broken": corpus["broken"], "blank": blank}
    lost, read = sum(counts.values()), corpus["read"] - corpus["blank"] + blank
    reason = f" (the first: {corpus['first_broken']})" if corpus["first_broken"] else ""
    kinds = (f"{count:,} {kind}{reason if kind == 'broken' else ''}" for kind, count in counts.items() if count)
    if not read:
        return None
    return _Dropped(
        lost / read,
        f"{lost:,} of {read:,} rows of {corpus['name']} ({corpus['source']}): {', '.join(kinds)}",
        2 * counts["not UTF-8"] > lost,
    )


def _dropped_rows(dropping: Sequence[_Dropped]) -> Finding:
    return DROPPED_ROWS.finding(
        "look",
        f"{dropping[0].share:.1%} of a corpus could not be read: {'; '.join(one.words for one in dropping)}.",
        "Figures on such a corpus describe what is left of it, which may be of another kind.",
        "Convert the file: iconv -f latin1 -t utf-8 FILE > converted"
        if dropping[0].is_encoding
        else "Mend the file; docs/corpora.md says what a row needs.",
        dropping[0].share,
    )


def _sample_only(names: list[str]) -> Finding:
    return REAL_CORPORA.finding(
        "not measured",
        f"How the checkpoint does on your texts is not known: {', '.join(names)} came from the embedded sample.",
        "The sample is enough to try embaudit out; conclusions need real corpora.",
        " ".join(("embaudit audit CHECKPOINT", *(f"--corpus {name}=FILE" for name in names))),
    )
