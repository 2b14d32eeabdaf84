"""Declares a published table once: a class with typed columns, and the rules that its rows must satisfy.

    class LengthBinRow(Row, table="length_bin", key=("corpus", "condition", "low")):
        '''Mean cosine of the texts of one length under one condition.'''

        corpus: str = column("Name of the corpus in this audit.")
        low: int = column("Shortest text of the bin.", unit="tokens", ge=0)
        texts: int = column("Texts in the bin.", ge=0)
        cosine_mean: float | None = column("Mean pairwise cosine; null below two texts.", within=COSINE)

        @rule
        def mean_needs_two_texts(cosine_mean: Series, texts: Series) -> Series:
            return cosine_mean.notna() == (texts > 1)

``LengthBinRow.table`` holds the declaration. Everything else is derived from it: the schema of staged files, the
expectation suite, the primary key, the comments in the warehouse, ``docs/tables.md``, the figures of gates and
regressions, the views that collect them, and the table in the warehouse (``DeclaredTable.ddl``).

A row class is also a frozen dataclass of its columns. What computes them does not know its corpus or its audit, so it
returns a row class without a table, from which that with the table inherits:

    class LengthCell(Row):
        '''Averages over the pairs between two length bins.'''

        pairs: int = column("Pairs of these texts.", ge=1)
        socm_mean: float = column("Mean SOCM.", interval=Interval("jackknife over texts", "socm_low", "socm_high"))
        socm_low: float | None
        socm_high: float | None

    class SocmLengthRow(LengthCell, OfCorpus, table="socm_length", …):

Importing a declaration does not import pandas, DuckDB, pyarrow or Great Expectations.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    Self,
    TypeAlias,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

from embaudit.declared.figure import Summary, SummaryFigure, Worse

# A pandas Series and DataFrame; importing pandas would take a third of a second.
Series: TypeAlias = Any
Frame: TypeAlias = Any
# By default ``int`` is 32-bit and ``str`` is text; these are the exceptions.
BigInt = Annotated[int, "int64"]
Json = Annotated[str, "json"]
Range: TypeAlias = tuple[float | None, float | None]

# Float32 rounding of embeddings changes cosines by up to 1e-6.
TOLERANCE = 1e-6
COSINE: Range = (-1 - TOLERANCE, 1 + TOLERANCE)
DIFFERENCE_OF_COSINES: Range = (-2 - 2 * TOLERANCE, 2 + 2 * TOLERANCE)
SHARE: Range = (0, 1)
# A share or squared length that is computed from float32 and may exceed 1 by rounding.
ROUNDED_SHARE: Range = (0, 1 + TOLERANCE)
ANY: Range = (None, None)

# Types of staged columns (pyarrow's names, or ``instant``) and of the warehouse.
_STAGED = {str: "string", int: "int32", float: "float64", bool: "bool", datetime: "instant"}
SQL_TYPES = {
    "string": "VARCHAR",
    "json": "JSON",
    "int32": "INTEGER",
    "int64": "BIGINT",
    "float64": "DOUBLE",
    "bool": "BOOLEAN",
    "instant": "TIMESTAMP WITH TIME ZONE",
}


@dataclass(frozen=True)
class Warn:
    """Values that are published with a warning."""

    null: bool = False
    false: bool = False
    below: float | None = None
    above: float | None = None


@dataclass(frozen=True)
class Interval:
    """A 95 % interval around a column's value: two more columns, null if there is none.

    Attributes:
        low, high: names of these columns; by default the value's with ``_low`` and ``_high``.
    """

    method: str
    low: str = ""
    high: str = ""

    def ends(self, value: str) -> tuple[str, str]:
        """The names of both columns, for a value of that name."""
        return self.low or f"{value}_low", self.high or f"{value}_high"


@dataclass(frozen=True)
class DeclaredColumn:
    """One declared column; ``name``, ``type``, ``is_nullable`` and ``members`` come from its annotation.

    Attributes:
        within: the lowest and highest allowed value; None for unbounded.
        at_least, above: columns of the same row that it must not be below, or must exceed.
        figure: whether gates and comparisons of audits use it; ``Worse`` if one direction is worse.
        dtype: of a figure, its precision as SQL over the table's rows; empty: the audit's.
        after: the column that it follows in the table; empty: that declared before it.
    """

    meaning: str
    unit: str = ""
    within: Range = ANY
    at_least: tuple[str, ...] = ()
    above: tuple[str, ...] = ()
    warn: Warn | None = None
    figure: bool | Worse = False
    interval: Interval | None = None
    name: str = ""
    type: str = ""
    is_nullable: bool = False
    members: tuple[str, ...] = ()
    dtype: str = ""
    after: str = ""

    @property
    def staged_type(self) -> str:
        return "string" if self.type == "json" else self.type

    @property
    def sql_type(self) -> str:
        return SQL_TYPES[self.type]

    @property
    def comment(self) -> str:
        """The meaning with its unit, as in the warehouse and the documentation."""
        return f"{self.meaning.removesuffix('.')} [{self.unit}]." if self.unit else self.meaning


def column(
    meaning: str,
    *,
    unit: str = "",
    within: Range = ANY,
    ge: float | None = None,
    le: float | None = None,
    at_least: str | tuple[str, ...] = (),
    above: str | tuple[str, ...] = (),
    warn: Warn | None = None,
    figure: bool | Worse = False,
    interval: Interval | None = None,
    dtype: str = "",
    after: str = "",
) -> Any:
    """Declare a column of a ``Row``; see ``DeclaredColumn``.

    Args:
        ge, le: the ends of ``within``, if only one is bounded.
    """
    return DeclaredColumn(
        meaning,
        unit,
        within if within != ANY else (ge, le),
        (at_least,) if isinstance(at_least, str) else at_least,
        (above,) if isinstance(above, str) else above,
        warn,
        figure,
        interval,
        dtype=dtype,
        after=after,
    )


@dataclass(frozen=True)
class RowRule:
    """A condition on each row, computed from the columns named by the function's parameters.

    The function gets whole columns, so a rule may also be about all rows of a file.
    """

    name: str
    meaning: str
    columns: tuple[str, ...]
    function: Callable[..., Series]


@dataclass(frozen=True)
class ComputedColumn(RowRule):
    """A column that exists only in the checks, for comparisons and for later rules.

    Attributes:
        is_required: null fails.
        at_least: columns of the row that it must not be below.
    """

    is_required: bool = False
    at_least: tuple[str, ...] = ()


def rule(function: Callable[..., Series]) -> Any:
    """Declare a condition that must hold in every row; a failed check reports its name."""
    return RowRule(function.__name__, inspect.getdoc(function) or "", _parameters(function), function)


def computed(*, required: bool = False, at_least: str | tuple[str, ...] = ()) -> Callable[[Callable[..., Series]], Any]:
    """Declare a column computed by the checks; see ``ComputedColumn``."""

    def declare(function: Callable[..., Series]) -> ComputedColumn:
        named = (at_least,) if isinstance(at_least, str) else at_least
        meaning = inspect.getdoc(function) or ""
        return ComputedColumn(function.__name__, meaning, _parameters(function), function, required, named)

    return declare


def _parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    return tuple(inspect.signature(function).parameters)


@dataclass(frozen=True)
class Lookup:
    """Data that rules need from another table: prepared once per check, and passed as the parameter called ``name``.

    Attributes:
        columns: columns to read from all its staged files; nulls in them fail that table's own suite.
        prepare: turns these columns into the object that is passed.
    """

    name: str
    table: str
    columns: tuple[str, ...]
    prepare: Callable[[Frame], Any]


@dataclass(frozen=True)
class DeclaredTable:
    """A published table, as declared by its row class.

    Attributes:
        keys: columns that identify a row within one audit (or one checkpoint, or one corpus).
        scope: ``audit`` rows carry the audit's id, which is not staged; ``content`` rows belong to a checkpoint or
            corpus and are the same whichever audit added them.
        is_bulk: no key index; checked shard by shard.
        planned: the key under which earlier steps record its expected number of rows; empty if none does.
        is_kept: the first key is a content hash, so existing rows are left unchanged.
        is_detail: rows per token, text or pair that are no longer needed once summaries, verdicts and comparisons are
            made; `embaudit prune` may delete them.
        item: names the row of a figure, as a format of its columns; empty if it has no figures.
        rules: conditions and computed columns, in order of evaluation.
    """

    name: str
    meaning: str
    keys: tuple[str, ...]
    scope: Literal["audit", "content"]
    is_bulk: bool
    planned: str
    is_kept: bool
    is_detail: bool
    item: str
    columns: Mapping[str, DeclaredColumn]
    rules: tuple[RowRule, ...] = ()
    lookup: Lookup | None = field(default=None)

    @property
    def schema(self) -> dict[str, str]:
        """Columns of the staged file, with their types."""
        return {name: column.staged_type for name, column in self.columns.items()}

    @property
    def primary_key(self) -> tuple[str, ...]:
        return ("audit_id", *self.keys) if self.scope == "audit" else self.keys

    @property
    def stored(self) -> dict[str, str]:
        """Columns of the table in the warehouse, with their SQL types."""
        own = {"audit_id": SQL_TYPES["string"]} if self.scope == "audit" else {}
        return own | {name: column.sql_type for name, column in self.columns.items()}

    @property
    def ddl(self) -> str:
        """The statement that creates it in the warehouse."""
        nullable = {name for name, column in self.columns.items() if column.is_nullable}
        lines = [f'"{name}" {kind}{"" if name in nullable else " NOT NULL"}' for name, kind in self.stored.items()]
        if not self.is_bulk:
            lines.append(f"PRIMARY KEY ({', '.join(self.primary_key)})")
        return f"CREATE TABLE {self.name} (\n    " + ",\n    ".join(lines) + "\n);"

    @property
    def computed(self) -> list[ComputedColumn]:
        """The columns that exist only in the checks."""
        return [one for one in self.rules if isinstance(one, ComputedColumn)]

    @property
    def statements(self) -> list[RowRule]:
        """The conditions that must hold in every row."""
        return [one for one in self.rules if not isinstance(one, ComputedColumn)]

    @property
    def required(self) -> list[str]:
        """The columns that must not be null, computed ones included."""
        declared = [one.name for one in self.columns.values() if not one.is_nullable]
        return [*declared, *(one.name for one in self.computed if one.is_required)]

    @property
    def comparisons(self) -> list[tuple[str, str, bool]]:
        """(larger, smaller, whether they may be equal) for all pairs of columns that are compared row by row."""
        columns = self.columns.values()
        return [
            *((one.name, other, True) for one in columns for other in one.at_least),
            *((one.name, other, True) for one in self.computed for other in one.at_least),
            *((one.name, other, False) for one in columns for other in one.above),
        ]

    @property
    def summary(self) -> Summary | None:
        """Its figures, for gates and comparisons of audits; None if it has none."""
        figures = tuple(_figure_of(one) for one in self.columns.values() if one.figure)
        return Summary(self.name, self.item, figures) if figures else None

    def derive(self, frame: Frame, lookup: Any = None) -> Frame:
        """The frame with one more column for each rule's result.

        A rule is skipped if one of its columns is missing; its expectation then fails.

        Args:
            lookup: what ``DeclaredTable.lookup`` prepared; None if the table has no lookup.
        """
        for one in self.rules:
            given = {} if self.lookup is None else {self.lookup.name: lookup}
            if all(name in given or name in frame.columns for name in one.columns):
                values = [given[name] if name in given else frame[name] for name in one.columns]
                frame = frame.assign(**{one.name: one.function(*values)})
        return frame


def _figure_of(column: DeclaredColumn) -> SummaryFigure:
    worse = column.figure if isinstance(column.figure, Worse) else None
    low, high = (column.interval.low, column.interval.high) if column.interval else ("", "")
    return SummaryFigure(column.name, column.name, worse, low, high, dtype=column.dtype)


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(column,))
class Row:
    """Base of row classes; a class without ``table`` contributes columns and rules to its subclasses.

    The ends of a column's interval are columns without being declared. A class that is instantiated annotates them.
    """

    table: ClassVar[DeclaredTable]
    own_columns: ClassVar[Mapping[str, DeclaredColumn]] = {}

    def __new__(cls, **_values: Any) -> Self:
        # Most row classes have no instance, and making a dataclass takes half a millisecond.
        for one in reversed(cls.__mro__):
            if issubclass(one, Row) and one is not Row and "__dataclass_fields__" not in vars(one):
                dataclass(frozen=True, kw_only=True)(one)
        return super().__new__(cls)

    def __init_subclass__(
        cls,
        *,
        table: str = "",
        key: tuple[str, ...] = (),
        scope: Literal["audit", "content"] = "audit",
        bulk: bool = False,
        planned: str = "",
        kept: bool = False,
        detail: bool = False,
        item: str = "",
        lookup: Lookup | None = None,
    ) -> None:
        super().__init_subclass__()
        cls.own_columns = {name: one for name, one in vars(cls).items() if isinstance(one, DeclaredColumn)}
        for name in cls.own_columns:
            # As the class's attribute it would be the default of an instance's.
            delattr(cls, name)
        if not table:
            return
        columns = dict(_columns_of(cls))
        ordered = _in_place({name: columns[name] for name in dict.fromkeys((*key, *columns))})
        rules = tuple(_rules_of(cls))
        known = {*ordered, *([lookup.name] if lookup else [])}
        for one in rules:
            if missing := set(one.columns) - known:
                raise TypeError(f"{table}: {one.name} reads {sorted(missing)}, which is neither a column nor computed")
            known.add(one.name)
        meaning = inspect.cleandoc(cls.__doc__ or "")
        cls.table = DeclaredTable(table, meaning, key, scope, bulk, planned, kept, detail, item, ordered, rules, lookup)
        for name, other, _ in cls.table.comparisons:
            if other not in known:
                raise TypeError(f"{table}: {name} is compared with {other!r}, which is neither a column nor computed")
        figures = [name for name, one in ordered.items() if one.figure]
        if bool(figures) != bool(item):
            raise TypeError(f"{table}: figures need an item and an item needs figures, not {figures} and {item!r}")


def _columns_of(cls: type) -> Iterator[tuple[str, DeclaredColumn]]:
    """The columns of a class and its bases; each interval's two columns follow its value."""
    # Like ``get_type_hints``, base classes first: so are their columns.
    known = {
        name: one for base in reversed(cls.__mro__) if issubclass(base, Row) for name, one in base.own_columns.items()
    }
    ends = {end for name, one in known.items() if one.interval for end in one.interval.ends(name)}
    for name, hint in get_type_hints(cls, include_extras=True).items():
        if get_origin(hint) is ClassVar or name in ends:
            continue
        declared = known.get(name)
        if declared is None:
            raise TypeError(f"{cls.__name__}.{name} is annotated but not declared with column(…)")
        kind, is_nullable, members = _type_of(hint)
        interval = declared.interval and Interval(declared.interval.method, *declared.interval.ends(name))
        at_least = (*declared.at_least, *([interval.low] if interval else []))
        yield (
            name,
            replace(
                declared,
                name=name,
                type=kind,
                is_nullable=is_nullable,
                members=members,
                interval=interval,
                at_least=at_least,
            ),
        )
        if interval:
            for end, side, above in ((interval.low, "Lower", ()), (interval.high, "Upper", (name,))):
                meaning = f"{side} end of the 95 % interval of {name}: {interval.method}."
                yield (
                    end,
                    DeclaredColumn(meaning, declared.unit, at_least=above, name=end, type="float64", is_nullable=True),
                )


def _in_place(columns: Mapping[str, DeclaredColumn]) -> dict[str, DeclaredColumn]:
    """The columns, each that names another after that one."""
    names = [name for name, one in columns.items() if not one.after]
    for name, one in columns.items():
        if one.after:
            names.insert(names.index(one.after) + 1, name)
    return {name: columns[name] for name in names}


def _type_of(hint: Any) -> tuple[str, bool, tuple[str, ...]]:
    """(type, whether null is allowed, members) of an annotation."""
    is_nullable = False
    if get_origin(hint) in (Union, UnionType):
        hint, *others = (one for one in get_args(hint) if one is not NoneType)
        is_nullable = True
        if others:
            raise TypeError(f"a column has one type, not {hint} or {others}")
    if get_origin(hint) is Annotated:
        return get_args(hint)[1], is_nullable, ()
    if get_origin(hint) is Literal:
        return "string", is_nullable, get_args(hint)
    return _STAGED[hint], is_nullable, ()


def _rules_of(cls: type) -> Iterator[RowRule]:
    """The rules of a class and its bases, in order of declaration, base classes first."""
    for one in reversed(cls.__mro__):
        for value in vars(one).values():
            if isinstance(value, RowRule):
                yield value
