"""pgvector's search: the first rows by an operator, with the index that PostgreSQL's planner takes for it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np

from embaudit.stores.place import quoted
from embaudit.stores.search import Hits, OpenSearch, SearchedColumns, SearchParameter, Settings, StoreSearch, Where
from embaudit.stores.store import Metric
from embaudit.words.errors import UsageError

TYPES = ("vector", "halfvec", "sparsevec")
OPERATORS: Mapping[Metric, str] = {"cosine": "<=>", "l2": "<->", "dot": "<#>"}
OPCLASS = re.compile(r"(vector|halfvec|sparsevec)_(cosine|l2|ip)_ops")
METRICS: Mapping[str, Metric] = {"cosine": "cosine", "l2": "l2", "ip": "dot"}
# Of a table: its indexes that pgvector made, each with what it is of, as a statement writes it.
INDEXES = """
SELECT c.relname, m.amname, o.opcname, c.reloptions, a.attname, pg_get_indexdef(i.indexrelid, 1, false),
  pg_get_expr(i.indpred, i.indrelid)
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am m ON m.oid = c.relam
JOIN pg_opclass o ON o.oid = i.indclass[0]
LEFT JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0] AND a.attnum > 0
WHERE i.indrelid = to_regclass(%s) AND m.amname IN ('hnsw', 'ivfflat') AND i.indisvalid ORDER BY 1
"""
EXACT = {"exact": 1}
SCANS = ("off", "relaxed_order", "strict_order")
MOST_EF = 1_000


@dataclass(frozen=True)
class VectorIndex:
    """An index of vectors.

    Attributes:
        name, method: ``hnsw`` or ``ivfflat``.
        of: what it is of, as a statement writes it: a column, or ``((v)::halfvec(768))``.
        type: of that.
        options: that it was made with.
        only: of which rows; empty for all.
    """

    name: str
    method: str
    of: str
    type: str
    metric: Metric
    options: Mapping[str, str]
    only: str

    @property
    def shown(self) -> str:
        set_ = "".join(f", {name} {value}" for name, value in self.options.items())
        return f"{'HNSW' if self.method == 'hnsw' else 'IVFFlat'} {self.name}{set_}"


def search_of_table(
    connection: Any, source: str, real: Mapping[str, str], explained: Callable[[], AbstractContextManager[None]]
) -> OpenSearch:
    """The search of a table, in the connection's read-only transaction.

    Args:
        source: as a statement names it.
        real: types of its columns, by name.
        explained: reports errors of the connection.
    """

    def open_search(columns: SearchedColumns) -> StoreSearch:
        kind = real.get(columns.vector, "")
        if kind not in TYPES:
            raise UsageError(
                f"Column {columns.vector} is {kind or 'inside another one'}, which pgvector does not search.",
                next_step="Name a column of pgvector's: --vector COLUMN",
            )
        with explained():
            indexes = indexes_of(connection, source, columns.vector)
            now = {name: str(_setting(connection, name)) for name in _names(indexes)}
        index = indexes[0] if indexes else None
        metric: Metric = index.metric if index else "cosine"
        of, type_ = (index.of, index.type) if index else (quoted(columns.vector), kind)
        id_, id_values = _expression(columns.id, real)
        score = f"{of} {OPERATORS[metric]} %s::{type_}"
        in_force: dict[str, str] = {}

        def set_all(settings: Settings) -> None:
            wanted = {**now, **{name: _written(name, value) for name, value in settings.items() if name in now}}
            wanted["enable_indexscan"] = "off" if settings.get("exact") else "on"
            for name, value in wanted.items():
                if in_force.get(name) != value:
                    connection.execute("SELECT set_config(%s, %s, true)", [name, value])
                    in_force[name] = value

        def statement(query: np.ndarray, k: int, where: Where) -> tuple[str, list[object]]:
            tests, values = [], []
            for name, value in where:
                own, path = _expression(name, real)
                tests.append(f"{own} = %s")
                values += [*path, _as_json(value) if path else value]
            literal = _literal(query, type_)
            kept = f" WHERE {' AND '.join(tests)}" if tests else ""
            asked = f"SELECT {id_}, {score} FROM {source}{kept} ORDER BY {score} LIMIT %s"
            return asked, [*id_values, literal, *values, literal, k]

        def find(query: np.ndarray, k: int, settings: Settings, where: Where) -> Hits:
            with explained():
                try:
                    # What fails ends here: rows are read in the same transaction.
                    with connection.transaction():
                        set_all(settings)
                        # Planned anew each time: a plan that is kept does not see what is set.
                        rows = connection.execute(*statement(query, k, where), prepare=False).fetchall()
                except BaseException:
                    in_force.clear()
                    raise
            return Hits([row[0] for row in rows], np.array([row[1] for row in rows], dtype=np.float64))

        def uses_index() -> bool:
            """Whether the planner takes an index, for a query without a filter."""
            some = columns.columns[columns.vector].some if columns.vector in columns.columns else ()
            if index is None or index.only or not some:
                return False
            with explained(), connection.transaction():
                set_all({})
                asked, values = statement(np.asarray(some[0], np.float32), 10, ())
                plan = "\n".join(row[0] for row in connection.execute(f"EXPLAIN {asked}", values).fetchall())
            return "Index Scan using" in plan

        with explained():
            # As the database has it for an application: rows were read by one worker alone.
            reset = "SELECT set_config(name, reset_val, true) FROM pg_settings WHERE name = %s"
            connection.execute(reset, ["max_parallel_workers_per_gather"])
        is_used = uses_index()
        return StoreSearch(
            index=index.shown if index and is_used else "no index: every row is looked at",
            find=find,
            metric=metric,
            is_exact=not is_used,
            dials=tuple(_dials(index, now)) if index and is_used else (),
            exact=EXACT,
            takes_where=True,
            notes=tuple(_notes(columns.vector, indexes, is_used)),
            anew={"hnsw": "more links (m) and a higher ef_construction"}.get(index.method, "") if index else "",
        )

    return open_search


def indexes_of(connection: Any, source: str, column: str) -> list[VectorIndex]:
    """Indexes of a column, or of what it is cast to; those of all rows first."""
    found = []
    for name, method, opclass, options, own, of, only in connection.execute(INDEXES, [source]):
        known = OPCLASS.fullmatch(opclass)
        cast = re.fullmatch(r'\(*("(?:[^"]|"")+"|\w+)\)?::(vector|halfvec)\((\d+)\)\)*', of)
        is_cast = cast is not None and cast[1] in (column, quoted(column))
        if known is None or not (own == column or is_cast):
            continue
        type_ = f"{cast[2]}({cast[3]})" if is_cast and cast is not None else known[1]
        made = dict(one.split("=", 1) for one in options or ())
        written = quoted(column) if own == column else f"({of})"
        found.append(VectorIndex(name, method, written, type_, METRICS[known[2]], made, only or ""))
    return sorted(found, key=lambda one: bool(one.only))


def _names(indexes: list[VectorIndex]) -> list[str]:
    if not indexes:
        return []
    return (
        ["hnsw.ef_search", "hnsw.iterative_scan"]
        if indexes[0].method == "hnsw"
        else ["ivfflat.probes", "ivfflat.iterative_scan"]
    )


def _setting(connection: Any, name: str) -> str | None:
    """What is in force for whoever connects so; None of a pgvector that does not have it."""
    # The extension's settings are known once something of it was run.
    connection.execute("SELECT '[1]'::vector")
    return connection.execute("SELECT current_setting(%s, true)", [name]).fetchone()[0]


def _dials(index: VectorIndex, now: Mapping[str, str]) -> list[SearchParameter]:
    dials = []
    for name, value in now.items():
        if value == "None":
            continue
        if name.endswith("iterative_scan"):
            dials.append(SearchParameter(name, SCANS.index(value), max(1, SCANS.index(value))))
        elif name == "ivfflat.probes":
            dials.append(SearchParameter(name, int(value), max(int(index.options.get("lists", 100)), int(value))))
        else:
            dials.append(SearchParameter(name, int(value), MOST_EF))
    return dials


def _notes(column: str, indexes: list[VectorIndex], is_used: bool) -> list[str]:
    notes = []
    if not indexes:
        notes.append(f"No index of pgvector's is on {column}: it was asked by cosine (<=>), of every row.")
    elif indexes[0].only:
        notes.append(f"Index {indexes[0].name} is of rows where {indexes[0].only} alone.")
    elif not is_used:
        notes.append(f"PostgreSQL's planner does not use index {indexes[0].name} here: it looks at every row.")
    elif indexes[0].type.partition("(")[0] == "halfvec" and "::" in indexes[0].of:
        notes.append(f"Index {indexes[0].name} is of halves, by which it was asked: ORDER BY {indexes[0].of} …")
    others = [one.name for one in indexes[1:] if one.metric != indexes[0].metric]
    if others:
        notes.append(f"{', '.join(others)} rank {column} by another metric: asked was {indexes[0].name}.")
    return notes


def _expression(name: str, real: Mapping[str, str]) -> tuple[str, list[object]]:
    """A column, or what a path leads to in a column of JSON, with the values that this takes."""
    if name in real:
        return quoted(name), []
    top = max((one for one in real if name.startswith(f"{one}.")), key=len, default=None)
    if top is None:
        raise UsageError(
            f"The table has no column {name!r}, by which a search could be asked.",
            next_step="Name columns of the table itself: what --texts brings is known here alone.",
        )
    return f"({quoted(top)}::jsonb #>> %s::text[])", [name[len(top) + 1 :].split(".")]


def _as_json(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _written(name: str, value: int) -> str:
    return SCANS[value] if name.endswith("iterative_scan") else str(value)


def _literal(query: np.ndarray, type_: str) -> str:
    if type_.startswith("sparsevec"):
        pairs = ",".join(f"{place + 1}:{float(query[place])!r}" for place in np.flatnonzero(query))
        return f"{{{pairs}}}/{len(query)}"
    return str(query.tolist())
