"""One query through an application's stages: after which the row is gone for good, and what stood there in its place.

A row that one branch of the application has and another has not (a search by words beside a dense one) is lost in
neither: it is lost in the first stage that takes from one that has it, and after which none has it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from embaudit.declared.document import Column, Table, Value
from embaudit.questions.why.application import Before, StageRow, Stages
from embaudit.questions.why.mends import nth

# Rows of the stage that lost it, which a page lists.
MOST = 10
How = Literal["", "never", "empty", "cut", "left out", "overtaken"]


@dataclass(frozen=True)
class StageTrace:
    """One query through the stages.

    Attributes:
        stages: in order; ids are the store's.
        ranks: of the row, by stage; None: it is not there.
        lost_at: the stage that lost it; empty if the last one has it.
        before: the stage before that, which has it; empty if none has.
        searches: the stages that take from no other one.
    """

    stages: Stages
    ranks: Mapping[str, int | None]
    lost_at: str = ""
    before: str = ""
    searches: tuple[str, ...] = ()

    @property
    def instead(self) -> list[tuple[int, StageRow, int | None]]:
        """What the stage gave that lost it: the rank there, the row, and its rank in the stage before."""
        earlier = _ranks(self.stages.get(self.before, ()))
        return [(place, row, earlier.get(row.id)) for place, row in enumerate(self.stages.get(self.lost_at, ()), 1)]

    @property
    def behind(self) -> int:
        """Of these, those that stood behind the row before, or were not there."""
        own = self.ranks.get(self.before) or 0
        return sum(earlier is None or earlier > own for _, _, earlier in self.instead)

    @property
    def how(self) -> How:
        """What the stage did that lost it; empty if none did."""
        if not self.lost_at:
            return ""
        instead = self.instead
        if not instead:
            return "empty"
        if not self.before:
            return "never"
        if not self.behind:
            return "cut"
        order = [earlier for _, _, earlier in instead if earlier is not None]
        return "left out" if len(order) == len(instead) and order == sorted(order) else "overtaken"

    @property
    def sentence(self) -> str:
        """What became of it in the application."""
        if not self.lost_at:
            last = list(self.ranks)[-1]
            return f"The application has it {nth(self.ranks[last] or 0)} after its last stage, {last}."
        count, had = len(self.stages[self.lost_at]), self.ranks.get(self.before)
        rows = f"{count:,} {'row' if count == 1 else 'rows'}"
        begin = f"The application loses it at the stage {self.lost_at}"
        at = f"{self.before} has it {nth(had or 0)}"
        if not self.before:
            others = [one for one in self.searches if one != self.lost_at]
            none = f"; nor does {' or '.join(others)}" if others else ""
            return f"{begin}, which does not find it{f' among its {rows}' if count else ': it gives nothing'}{none}."
        return {
            "empty": f"{begin}: {at}, and {self.lost_at} gives nothing.",
            "cut": f"{begin}: {at}, and {self.lost_at} keeps {rows}, all of which stood above it.",
            "left out": f"{begin}: {at}, and {self.lost_at} leaves it out and keeps {self.behind:,} from behind it.",
            "overtaken": f"{begin}: {at}, and {self.lost_at} has {rows}, {self.behind:,} from behind it or new.",
        }[self.how]

    @property
    def mend(self) -> str:
        own = self.ranks.get(self.before)
        return {
            "never": "The walk says why the dense search does not have it; a search by words has to have its words.",
            "empty": f"Run {self.lost_at} alone for this query.",
            "cut": f"Let {self.lost_at} keep {own or 0:,}.",
            "left out": f"See which condition of {self.lost_at} it does not meet, or how {self.lost_at} scores it.",
            "overtaken": f"See how {self.lost_at} scores it, or let {self.lost_at} keep more.",
        }.get(self.how, "")

    @property
    def told_with_mend(self) -> str:
        return f"{self.sentence} → {self.mend}" if self.mend else self.sentence

    @property
    def told(self) -> str:
        """``dense 3, words –, fused 5, shown –``."""
        return ", ".join(f"{name} {'–' if rank is None else f'{rank:,}'}" for name, rank in self.ranks.items())

    def table(self) -> Table:
        """What stands in the stage that lost it."""
        columns = [Column(f"rank in {self.lost_at}", ","), Column("id"), Column("score", ".3f")]
        rows: list[tuple[Value, ...]] = [(place, row.id, row.score) for place, row, _ in self.instead[:MOST]]
        if self.before:
            columns.append(Column(f"in {self.before}", ","))
            rows = [(*row, earlier) for row, (_, _, earlier) in zip(rows, self.instead, strict=False)]
        return Table(columns, rows)

    def as_json(self) -> dict[str, Any]:
        instead = [
            {"id": row.id, "rank": place, "rank_before": earlier, "score": row.score}
            for place, row, earlier in self.instead[:MOST]
        ]
        return {
            "ranks": dict(self.ranks),
            "lost_at": self.lost_at or None,
            "before": self.before or None,
            "how": self.how or None,
            "sentence": self.sentence,
            "mend": self.mend,
            "instead": instead,
        }


def _ranks(rows: Sequence[StageRow]) -> dict[str, int]:
    ranks: dict[str, int] = {}
    for place, row in enumerate(rows, 1):
        ranks.setdefault(row.id, place)
    return ranks


def trace_of(stages: Stages, wanted: frozenset[str], before: Before) -> StageTrace:
    names = list(stages)
    ranks = {
        name: next((place for place, row in enumerate(rows, 1) if row.id in wanted), None)
        for name, rows in stages.items()
    }
    having = [place for place, name in enumerate(names) if ranks[name] is not None]
    searches = tuple(name for name in names if not before.get(name, frozenset()) & set(names))
    if not having:
        return StageTrace(stages, ranks, names[0], "", searches)
    later = names[having[-1] + 1 :]
    if not later:
        return StageTrace(stages, ranks, searches=searches)
    have = {names[place] for place in having}
    # Two branches that nothing joins: what the application gives at last does not have it.
    lost_at = next((name for name in later if before.get(name, frozenset()) & have), later[-1])
    feeding = [names[place] for place in having if names[place] in before.get(lost_at, frozenset())]
    return StageTrace(stages, ranks, lost_at, feeding[-1] if feeding else names[having[-1]], searches)


def inferred(answers: Sequence[Stages]) -> Before:
    """What each stage takes from, of stages that are lists alone: all before it, unless rows go around it.

    A row goes around a stage if it stands before it, not in it, and in a later one that gives nothing of its own: that
    stage took it from before, and so the one between is a branch.
    """
    names = list(dict.fromkeys(name for stages in answers for name in stages))
    ids = [{name: {row.id for row in stages.get(name, ())} for name in names} for stages in answers]
    searches = {
        name
        for own in ids
        for place, name in enumerate(names)
        if own[name] - set().union(*(own[one] for one in names[:place]))
    }
    before: dict[str, frozenset[str]] = {}
    for place, name in enumerate(names):
        is_branch = any(_goes_around(own, names, place, searches) for own in ids)
        before[name] = frozenset() if is_branch else frozenset(names[:place])
    return before


def _goes_around(own: Mapping[str, set[str]], names: Sequence[str], place: int, searches: set[str]) -> bool:
    earlier: set[str] = set().union(*(own[one] for one in names[:place])) - own[names[place]]
    for later in names[place + 1 :]:
        if own[later] & earlier and later not in searches:
            return True
        earlier -= own[later]
    return False
