"""Integrity on a page: the load certificate by what became of the tensors."""

from __future__ import annotations

from typing import Any

from embaudit.declared.document import Column, Section, Table
from embaudit.declared.finding import Level

# Queries for the section's data, by name, for one audit.
FACTS = {
    "weights": (
        "SELECT status, stored_dtype, count(*) AS tensors, sum(entries)::BIGINT AS entries, "
        "first(tensor ORDER BY layer NULLS FIRST, tensor) AS first, string_agg(DISTINCT file, ', ' ORDER BY file) "
        "AS files FROM weight WHERE audit_id = ? GROUP BY ALL ORDER BY tensors DESC, status, stored_dtype"
    ),
}
LEVELS: dict[str, Level] = {"missing": "problem", "changed": "problem"}


def section(facts: dict[str, Any]) -> Section | None:
    """None if the audit left the measure out."""
    if not facts["weights"]:
        return None
    columns = (
        *(Column("status", levels=LEVELS), Column("in the file"), Column("tensors", ","), Column("numbers", ",")),
        *(Column("such as", is_prose=True), Column("file", is_prose=True)),
    )
    names = ("status", "stored_dtype", "tensors", "entries", "first", "files")
    rows = [[row[name] for name in names] for row in facts["weights"]]
    title = "Where the tensors in memory come from; unread: in the file, and nothing is made of it, most often heads"
    return Section("Integrity", [Table(columns, rows, title, more="embaudit query weights")])
