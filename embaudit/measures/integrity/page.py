"""Integrity on a page: the load certificate by what became of the tensors."""

from __future__ import annotations

from typing import Any

from embaudit.declared.document import Column, Section, Table

# Queries for the section's data, by name, for one audit.
FACTS = {
    "weights": (
        "SELECT status, stored_dtype, count(*) AS tensors, sum(entries)::BIGINT AS entries, "
        "first(tensor ORDER BY layer NULLS FIRST, tensor) AS first, string_agg(DISTINCT file, ', ' ORDER BY file) "
        "AS files FROM weight WHERE audit_id = ? GROUP BY ALL ORDER BY tensors DESC, status, stored_dtype"
    ),
}
COLUMNS = {
    "status": Column("status", levels={"missing": "problem", "changed": "problem"}),
    **{"stored_dtype": Column("in the file"), "tensors": Column("tensors", ","), "entries": Column("numbers", ",")},
    **{"first": Column("such as", is_prose=True), "files": Column("file", is_prose=True)},
}


def section(facts: dict[str, Any]) -> Section | None:
    """None if the audit left the measure out."""
    if not facts["weights"]:
        return None
    title = "Where the tensors in memory come from; unread: in the file, and nothing is made of it, most often heads"
    return Section("Integrity", [Table.of(COLUMNS, facts["weights"], title, more="embaudit query weights")])
