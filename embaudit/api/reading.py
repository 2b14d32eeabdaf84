"""Published audits and warehouses as pandas DataFrames, for notebooks.

Neither class keeps a connection open: DuckDB locks its file, and the next audit has to publish into it.
"""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from embaudit.declared.rule import Finding
from embaudit.pages.html import render_summary
from embaudit.pages.write import audit_page, read_audit, write_page
from embaudit.system.settings import Settings, Warehouse, warehouse_at
from embaudit.warehouse.connect import open_reader
from embaudit.warehouse.named import find_audit
from embaudit.warehouse.query import query_frame, table_frame

if TYPE_CHECKING:
    from pandas import DataFrame


class Audit:
    """A published audit; notebooks display its findings.

    Args:
        warehouse: where it is published.
        audit_id: the complete id.
        warnings: of its run; empty for an audit read from the warehouse.
    """

    def __init__(self, warehouse: Warehouse, audit_id: str, warnings: tuple[str, ...] = ()) -> None:
        # Absolute: a notebook may change its working directory.
        self.warehouse = warehouse.expanduser().absolute() if isinstance(warehouse, Path) else warehouse
        self.audit_id = audit_id
        self.warnings = warnings

    @property
    def checkpoint_id(self) -> str:
        """The checkpoint's content id, 16 hex digits."""
        return str(self._facts["checkpoint_id"])

    @property
    def source(self) -> str:
        """The checkpoint's name when it was audited."""
        return str(self._facts["source"] or self.checkpoint_id)

    @property
    def findings(self) -> list[Finding]:
        """What the figures mean, in words, in the audit's order."""
        names = ("level", "sentence", "meaning", "advice", "name", "value", "low", "high")
        rows = ({name: row[name] for name in names} for row in self._facts["findings"])
        return [Finding(**{**row, "meaning": row["meaning"] or "", "advice": row["advice"] or ""}) for row in rows]

    @property
    def figures(self) -> dict[str, float]:
        """The findings as numbers for a training log: the number of problems, and each finding's value by name."""
        values = {found.name: found.value for found in self.findings if found.value is not None}
        return {"problems": float(self._levels["problem"]), **values}

    def table(self, name: str) -> DataFrame:
        """A table or view of the warehouse: this audit's rows if it has an audit_id, else all rows.

        Raises:
            UsageError: if there is no such table or view.
            WarehouseError: if the warehouse is gone or locked.
        """
        return table_frame(self.warehouse, name, self.audit_id)

    def report(self, path: str | Path | None = None) -> Path:
        """Write the HTML page to ``path``, or to reports/AUDIT.html in EMBAUDIT_HOME, and return its path.

        Raises:
            StorageError: if it cannot be written.
            WarehouseError: if the warehouse is gone or locked.
        """
        out = None if path is None else Path(path).expanduser()
        return write_page(self.warehouse, self.audit_id, Settings().reports, out).path

    @cached_property
    def _facts(self) -> dict[str, Any]:
        return read_audit(self.warehouse, self.audit_id)

    @property
    def _levels(self) -> Counter[str]:
        return Counter(found.level for found in self.findings)

    def __repr__(self) -> str:
        found = ", ".join(f"{count} {level}" for level, count in self._levels.items())
        return f"<embaudit audit {self.audit_id} of {self.source!r}: {found or 'no findings'}>"

    def _repr_html_(self) -> str:
        return render_summary(audit_page(self._facts))


class WarehouseReader:
    """A warehouse, read-only."""

    def __init__(self, warehouse: Warehouse) -> None:
        self.warehouse = warehouse.expanduser().absolute() if isinstance(warehouse, Path) else warehouse

    def query(self, name_or_sql: str) -> DataFrame:
        """The answer to a named query (``embaudit query`` lists them) or to one SQL statement.

        Raises:
            UsageError: if the name is unknown or the SQL is invalid.
            WarehouseError: if the warehouse is locked, or DuckDB rejects the SQL.
        """
        return query_frame(self.warehouse, name_or_sql)

    def audits(self) -> DataFrame:
        """Every audit and its outcome, newest first."""
        return self.query("audits")

    def audit(self, audit: str = "latest") -> Audit:
        """A published audit by its id, the id's first digits, or ``latest``.

        Raises:
            UsageError: if there is none, or several match.
            CheckFailed: if it is not published.
            WarehouseError: if the warehouse is locked.
        """
        with open_reader(self.warehouse) as connection:
            return Audit(self.warehouse, find_audit(connection, audit))

    def __repr__(self) -> str:
        return f"<embaudit warehouse {self.warehouse}>"


def open_warehouse(warehouse: str | Path | None = None) -> WarehouseReader:
    """Open a warehouse for reading: a DuckDB file or a DuckLake address.

    Args:
        warehouse: by default ``EMBAUDIT_WAREHOUSE``, or warehouse.duckdb in ``EMBAUDIT_HOME`` (.embaudit).

    Raises:
        WarehouseError: if there is none, or it is locked.
    """
    reader = WarehouseReader(warehouse_at(warehouse) if warehouse else Settings().warehouse_path)
    with open_reader(reader.warehouse):
        return reader
