"""Declares each published table once: a class with typed columns, and the rules that its rows obey.

    class LengthBinRow(Row, table="length_bin", key=("corpus", "condition", "low")):
        '''Mean cosine of the texts of one length under one condition.'''

        corpus: str = column("Name of the corpus in this audit.")
        low: int = column("Shortest text of the bin.", unit="tokens", ge=0)
        texts: int = column("Texts in the bin.", ge=0)
        cosine_mean: float | None = column("Mean pairwise cosine; null below two texts.", within=COSINE)

        @rule
        def mean_needs_two_texts(cosine_mean: Series, texts: Series) -> Series:
            return cosine_mean.notna() == (texts > 1)

``LengthBinRow.table`` holds the declaration. The schema of staged files, the expectation suite, the primary key, the
comments in the warehouse, ``docs/tables.md``, the figures of gates and regressions and their views are derived from it.
``sql/migrations`` remains the authority on what is in a warehouse; a test compares the two.

Importing a declaration imports neither pandas nor DuckDB, pyarrow or Great Expectations.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Literal, TypeAlias, Union, get_args, get_origin, get_type_hints

from embaudit.figure import Summary, SummaryFigure, Worse

# A pandas column or frame. pandas itself would take a third of a second to import.
Series: TypeAlias = Any
Frame: TypeAlias = Any
# By default an ``int`` has 32 bits and a ``str`` is text; these are the exceptions.
BigInt = Annotated[int, "int64"]
Json = Annotated[str, "json"]
Range: TypeAlias = tuple[float | None, float | None]

# Rounding of float32 embeddings reaches cosines at 1e-6; identities hold in float64 beyond that.
TOLERANCE = 1e-6
COSINE: Range = (-1 - TOLERANCE, 1 + TOLERANCE)
DIFFERENCE_OF_COSINES: Range = (-2 - 2 * TOLERANCE, 2 + 2 * TOLERANCE)
SHARE: Range = (0, 1)
# A share or squared length computed from float32, which may exceed 1 by rounding.
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
    """A 95 % interval that contains its value: two more columns, null if there is no interval.

    Attributes:
        low, high: their names; by default the value's with ``_low`` and ``_high``.
    """

    method: str
    low: str = ""
    high: str = ""


@dataclass(frozen=True)
class Column:
    """One column, as declared; ``name``, ``type``, ``is_nullable`` and ``members`` come from its annotation.

    Attributes:
        within: lowest and highest allowed value, None for open.
        at_least, above: columns of the same row that it must not fall below, or must exceed.
        figure: whether gates and comparisons use it; ``Worse`` if one direction is worse.
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

    @property
    def staged_type(self) -> str:
        return "string" if self.type == "json" else self.type

    @property
    def sql_type(self) -> str:
        return SQL_TYPES[self.type]

    @property
    def comment(self) -> str:
        """The meaning with its unit, for the warehouse and the documentation."""
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
) -> Any:
    """Declare a column of a ``Row``; see ``Column``.

    Args:
        ge, le: the ends of ``within``, if only one is closed.
    """
    return Column(
        meaning,
        unit,
        within if within != ANY else (ge, le),
        (at_least,) if isinstance(at_least, str) else at_least,
        (above,) if isinstance(above, str) else above,
        warn,
        figure,
        interval,
    )


@dataclass(frozen=True)
class Rule:
    """A statement about a row, true or false, computed from the columns named by the function's parameters.

    The function gets whole columns, so a rule can also be about all rows of a file.
    """

    name: str
    meaning: str
    columns: tuple[str, ...]
    function: Callable[..., Series]


@dataclass(frozen=True)
class ComputedColumn(Rule):
    """A column that exists only in the checks, to compare with others and for later rules.

    Attributes:
        is_required: whether null fails.
        at_least: columns of the row that it must not fall below.
    """

    is_required: bool = False
    at_least: tuple[str, ...] = ()


def rule(function: Callable[..., Series]) -> Any:
    """Declare a statement that must be true in every row; a failed check reports its name."""
    return Rule(function.__name__, inspect.getdoc(function) or "", _parameters(function), function)


def computed(*, required: bool = False, at_least: str | tuple[str, ...] = ()) -> Callable[[Callable[..., Series]], Any]:
    """Declare a column that the checks compute; see ``ComputedColumn``."""

    def declare(function: Callable[..., Series]) -> ComputedColumn:
        named = (at_least,) if isinstance(at_least, str) else at_least
        meaning = inspect.getdoc(function) or ""
        return ComputedColumn(function.__name__, meaning, _parameters(function), function, required, named)

    return declare


def _parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    return tuple(inspect.signature(function).parameters)


@dataclass(frozen=True)
class Lookup:
    """What rules need from another table: prepared once per check, and passed as the parameter ``name``.

    Attributes:
        columns: read from all of its staged files; nulls in them fail that table's own suite.
        prepare: makes the parameter from these columns.
    """

    name: str
    table: str
    columns: tuple[str, ...]
    prepare: Callable[[Frame], Any]


@dataclass(frozen=True)
class Table:
    """A published table, as its row class declares it.

    Attributes:
        keys: columns that identify a row within one audit (or one checkpoint, or one corpus).
        scope: ``audit`` rows carry the audit's id, which is not staged; ``content`` rows belong to a checkpoint or
            corpus and are the same in every audit.
        is_bulk: no key index; checked shard by shard.
        planned: key under which an earlier step gives the number of its rows; empty if none knows it.
        is_kept: the first key is a content hash, so existing rows are left as they are.
        is_detail: rows per token, text or pair that no summary, verdict or comparison needs later: `embaudit prune` may
            delete them.
        item: name of the row that a figure is from, as a format string of columns; empty if it has no figures.
        rules: statements and computed columns, in the order in which they are evaluated.
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
    columns: Mapping[str, Column]
    rules: tuple[Rule, ...] = ()
    lookup: Lookup | None = field(default=None)

    @property
    def schema(self) -> dict[str, str]:
        """The staged file's columns and their types."""
        return {name: column.staged_type for name, column in self.columns.items()}

    @property
    def primary_key(self) -> tuple[str, ...]:
        return ("audit_id", *self.keys) if self.scope == "audit" else self.keys

    @property
    def computed(self) -> list[ComputedColumn]:
        """The columns that exist only in the checks."""
        return [one for one in self.rules if isinstance(one, ComputedColumn)]

    @property
    def statements(self) -> list[Rule]:
        """The rules that must be true in every row."""
        return [one for one in self.rules if not isinstance(one, ComputedColumn)]

    @property
    def required(self) -> list[str]:
        """The columns that have a value in every row, computed ones included."""
        declared = [one.name for one in self.columns.values() if not one.is_nullable]
        return [*declared, *(one.name for one in self.computed if one.is_required)]

    @property
    def comparisons(self) -> list[tuple[str, str, bool]]:
        """(larger, smaller, whether they may be equal) for each pair of columns compared row by row."""
        columns = self.columns.values()
        return [
            *((one.name, other, True) for one in columns for other in one.at_least),
            *((one.name, other, True) for one in self.computed for other in one.at_least),
            *((one.name, other, False) for one in columns for other in one.above),
        ]

    @property
    def summary(self) -> Summary | None:
        """Its columns that gates and comparisons use; None if there are none."""
        figures = tuple(_figure_of(one) for one in self.columns.values() if one.figure)
        return Summary(self.name, self.item, figures) if figures else None

    def derive(self, frame: Frame, lookup: Any = None) -> Frame:
        """The frame with one more column for each rule.

        A rule with a missing column is left out, so that its expectation fails.

        Args:
            lookup: what ``Table.lookup`` prepared; None if the table has none.
        """
        for one in self.rules:
            given = {} if self.lookup is None else {self.lookup.name: lookup}
            if all(name in given or name in frame.columns for name in one.columns):
                values = [given[name] if name in given else frame[name] for name in one.columns]
                frame = frame.assign(**{one.name: one.function(*values)})
        return frame


def _figure_of(column: Column) -> SummaryFigure:
    worse = column.figure if isinstance(column.figure, Worse) else None
    low, high = (column.interval.low, column.interval.high) if column.interval else ("", "")
    return SummaryFigure(column.name, column.name, worse, low, high)


class Row:
    """Base of row classes; one without ``table`` is a mixin of columns and rules."""

    table: ClassVar[Table]

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
        if not table:
            return
        columns = dict(_columns_of(cls))
        ordered = {name: columns[name] for name in dict.fromkeys((*key, *columns))}
        rules = tuple(_rules_of(cls))
        known = {*ordered, *([lookup.name] if lookup else [])}
        for one in rules:
            if missing := set(one.columns) - known:
                raise TypeError(f"{table}: {one.name} reads {sorted(missing)}, which is neither a column nor computed")
            known.add(one.name)
        meaning = inspect.cleandoc(cls.__doc__ or "")
        cls.table = Table(table, meaning, key, scope, bulk, planned, kept, detail, item, ordered, rules, lookup)
        for name, other, _ in cls.table.comparisons:
            if other not in known:
                raise TypeError(f"{table}: {name} is compared with {other!r}, which is neither a column nor computed")
        figures = [name for name, one in ordered.items() if one.figure]
        if bool(figures) != bool(item):
            raise TypeError(f"{table}: figures {figures} and item={item!r}: a table needs both or neither")


def _columns_of(cls: type) -> Iterator[tuple[str, Column]]:
    """The columns of a class and its bases, with the two of each interval after its value."""
    hints = get_type_hints(cls, include_extras=True)
    # ``get_type_hints`` begins with the base classes: their columns come first.
    for name, hint in hints.items():
        declared = getattr(cls, name, None)
        if not isinstance(declared, Column):
            if name != "table":
                raise TypeError(f"{cls.__name__}.{name} is annotated but not declared with column(…)")
            continue
        kind, is_nullable, members = _type_of(hint)
        interval = declared.interval and Interval(
            declared.interval.method, declared.interval.low or f"{name}_low", declared.interval.high or f"{name}_high"
        )
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
                yield end, Column(meaning, declared.unit, at_least=above, name=end, type="float64", is_nullable=True)


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


def _rules_of(cls: type) -> Iterator[Rule]:
    """The rules of a class and its bases, in order of declaration, base classes first."""
    for one in reversed(cls.__mro__):
        for value in vars(one).values():
            if isinstance(value, Rule):
                yield value
