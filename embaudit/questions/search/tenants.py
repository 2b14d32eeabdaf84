"""A search by tenant: under a filter on each value of a field, what it finds of the rows that the filter keeps.

An index that many share may find well on the whole and badly for one of them: a graph that is walked among everybody's
rows meets few of a small tenant's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from embaudit.declared.rule import Finding, Rule
from embaudit.questions.search.measured import SearchedRows
from embaudit.stores.store import Store
from embaudit.words.errors import UsageError
from embaudit.words.estimate import Estimate

# Values that are asked for one by one, the most frequent first, and queries for each.
MOST, QUERIES = 50, 50
TENANTS = Rule(
    "tenants",
    "recall@10 under the filter, by value of `--where-each`; the lowest",
    look_if="as `recall`, for any of them; or a query gets fewer than ten results where there are as many rows",
    problem_if="as `recall`, for any of them",
    reason="the mean over all hides a tenant whose rows are not found. `not measured` if the store cannot be asked "
    "with a filter",
)


@dataclass(frozen=True)
class Tenant:
    """One value of a field.

    Attributes:
        rows: that have it.
        searched: under a filter on it; None if the store could not be asked.
    """

    value: str
    rows: int
    searched: SearchedRows | None = None

    @property
    def recall(self) -> Estimate | None:
        return None if self.searched is None else self.searched.first.recall

    @property
    def fewer(self) -> int:
        """Queries with fewer than ten results, although there are as many rows."""
        return 0 if self.searched is None or self.rows < self.searched.first.truth.k else self.searched.first.fewer


@dataclass(frozen=True)
class TenantFilters:
    """A field by whose values a search is asked.

    Attributes:
        opened: the store with a filter on a value.
    """

    field: str
    opened: Callable[[str], Store]


def values_of(store: Store, field: str) -> tuple[list[tuple[str, int]], int]:
    """The most frequent values of a field with their rows, and how many values it has.

    Raises:
        UsageError: if rows have no such field.
    """
    names = list(store.fields)
    if field not in names:
        raise UsageError(
            f"Rows of {store.shown} have no field {field!r}.", next_step=f"They have: {', '.join(sorted(names))}."
        )
    counts: Counter[str] = Counter()
    kinds: set[type] = set()
    for batch in store.batches([field]):
        values = [value for value in batch.fields[field] if value is not None]
        counts.update(map(str, values))
        kinds.update(map(type, values))
    if len(kinds) > 1:
        raise UsageError(
            f"Values of {field!r} in {store.shown} are of several types: "
            f"{', '.join(sorted(kind.__name__ for kind in kinds))}.",
            kept="A store tells them apart, and a filter has one of them.",
            next_step="Bring them to one type, or name another field.",
        )
    return counts.most_common(MOST), len(counts)


def tenants_of(
    values: list[tuple[str, int]], opened: Callable[[str], Store], asked: Callable[[Store], SearchedRows | None]
) -> Iterator[Tenant]:
    """Ask under a filter on each value.

    Args:
        opened: the store with the filter on a value.
    """
    for value, rows in values:
        yield Tenant(value, rows, asked(opened(value)))


def tenant_findings(
    field: str, tenants: tuple[Tenant, ...], values: int, target: float, level_of: Callable[..., str]
) -> Iterator[Finding]:
    """The worst tenant, and how many are below what is wanted."""
    told = [(tenant.recall, tenant) for tenant in tenants if tenant.recall is not None]
    if not told:
        yield TENANTS.finding(
            "not measured",
            f"No value of {field} could be asked for.",
            "What a tenant finds is unknown.",
            "Leave out --where-each, or look whether the store filters by this field.",
        )
        return
    recall, worst = min(told, key=lambda one: one[0].known)
    below = sum(level_of(share, target) == "problem" for share, _ in told)
    fewer = max((tenant for tenant in tenants), key=lambda one: one.fewer)
    of = f"{len(told):,} of {values:,} values" if values > len(told) else f"{len(told):,} values"
    more = f"; {below:,} of them are below {target:.0%}" if below > 1 else ""
    short = (
        f" {fewer.fewer:,} queries get fewer than ten results for {fewer.value!r}, which has {fewer.rows:,} rows."
        if fewer.fewer
        else ""
    )
    level = level_of(recall, target)
    if level == "ok" and short:
        level = "look"
    yield TENANTS.finding(
        level,  # type: ignore[arg-type]
        f"By {field} ({of}), the search finds least for {worst.value!r}: {recall:.2f} of the ten nearest of its "
        f"{worst.rows:,} rows{more}.{short}",
        "The mean over all rows hides it.",
        "Have the store filter before it searches, or give small tenants an index of their own.",
        *recall,
    )
