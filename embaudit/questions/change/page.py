"""The section of a check's page about a base: what moved by block, scores side by side, vectors by kind of text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from embaudit.declared.document import Column, Section, Table, Value
from embaudit.words.estimate import Estimate


def against_base(base: str, figures: Mapping[str, Any]) -> Iterator[Section]:
    """One section; none if no part of the comparison ran.

    Args:
        figures: of ``embaudit.questions.change``.
    """
    tables = [
        table
        for table in (_scores(figures.get("data")), _blocks(figures.get("weights")), _vectors(figures.get("vectors")))
        if table is not None
    ]
    if tables:
        yield Section(f"Against {base}", tables)


def _scores(data: Sequence[Mapping[str, Any]] | None) -> Table | None:
    columns = (
        *(Column("score", is_prose=True), Column("texts")),
        *(Column("base", ".3f"), Column("tuned", ".3f"), Column("gain [95 %]", "+.3f", bounds="+.3f")),
    )
    rows = [
        (
            f"{one['metric']}, {one['name']}",
            "given" if one["is_given"] else "sample",
            *(one[side]["value"] for side in ("base", "tuned")),
            Estimate(**one["gain"]),
        )
        for one in data or ()
    ]
    return Table(columns, rows, "Scores side by side, on the same texts") if rows else None


def _blocks(weights: Mapping[str, Any] | None) -> Table | None:
    if not weights or weights["extent"] == "incomparable":
        return None
    columns = (
        *(Column("block", is_prose=True), Column("tensors that moved", is_right=True)),
        *(Column("numbers that moved", ".1%"), Column("‖Δ‖/‖W‖", ".2g"), Column("note", is_prose=True)),
    )
    rows: list[tuple[Value, ...]] = [
        (
            block["name"],
            f"{block['tensors_moved']} of {block['tensors']}",
            block["moved"] / block["compared"] if block["compared"] else None,
            block["relative"],
            "has nothing to do with the base's" if block["is_replaced"] else "" if block["compared"] else "only in one",
        )
        for block in weights["blocks"]
    ]
    return Table(columns, rows, "What moved in the weights, by block")


def _vectors(vectors: Sequence[Mapping[str, Any]] | None) -> Table | None:
    columns = (
        *(Column("texts", is_prose=True), Column("how many", ","), Column("1 − cosine, median", ".2g")),
        *(Column("largest", ".2g"), Column("text that moved most", is_prose=True, is_detail=True)),
    )
    rows = [
        (one["kind"], one["texts"], one["median"], one["most"], one["furthest"][:80].strip() or "(blank)")
        for one in vectors or ()
    ]
    return Table(columns, rows, "How far vectors moved, by kind of text") if rows else None
