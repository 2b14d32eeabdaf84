"""An application's stages for all queries: how many rows are left after each, and whether their ids are the store's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from embaudit.declared.document import Column, Section, Table, Value
from embaudit.declared.rule import Finding, Rule
from embaudit.questions.report import AnswerFigure
from embaudit.questions.why.application import Application, StageError, StageRow, Stages
from embaudit.questions.why.rows import ExpectedRow, StoreScan, near_ids
from embaudit.questions.why.stage_trace import StageTrace, inferred, trace_of
from embaudit.statistics import exact_share
from embaudit.words.estimate import Estimate
from embaudit.words.sentences import first_of, quoted

STAGES = Rule(
    "stages",
    "`--stages`: rows that the application's last stage does not have",
    problem_if="a row that should be found is lost after any stage",
    reason="the application does not show it, whatever the search finds",
)
STAGE_IDS = Rule(
    "stage_ids",
    "`--stages`: ids of all stages",
    look_if="some are not in the store",
    reason="they may be of another store, and a row under another id is taken for lost",
)
EMPTY_STAGE = Rule(
    "empty_stage",
    "`--stages`",
    look_if="a stage gives nothing for any query",
    reason="a branch that is broken, and raises no error, looks like that",
)


@dataclass(frozen=True)
class StageTraces:
    """All queries through the stages of an application.

    Attributes:
        traces: by case; none of a case whose row is not in the store.
        findings: about the stages as such.
    """

    name: str
    traces: Mapping[int, StageTrace]
    findings: tuple[Finding, ...] = ()

    @property
    def names(self) -> list[str]:
        """The stages of all queries, in order."""
        return list(dict.fromkeys(name for one in self.traces.values() for name in one.stages))

    @property
    def lost(self) -> dict[int, StageTrace]:
        return {place: one for place, one in self.traces.items() if one.lost_at}

    def left(self, stage: str) -> tuple[int, int]:
        """How many rows a stage has, and of how many queries that have this stage."""
        ranks = [one.ranks[stage] for one in self.traces.values() if stage in one.ranks]
        return sum(rank is not None for rank in ranks), len(ranks)

    def all_findings(self) -> list[Finding]:
        """What is lost, and what is odd about the stages."""
        return [*self._lost(), *self.findings]

    def _lost(self) -> Iterator[Finding]:
        lost, count = self.lost, len(self.traces)
        if count == 1:
            (one,) = self.traces.values()
            yield STAGES.finding("problem" if lost else "ok", one.sentence, advice=one.mend, value=float(len(lost)))
        elif count:
            by_stage = {name: sum(one.lost_at == name for one in lost.values()) for name in self.names}
            where = ", ".join(f"{lost_here:,} at {name}" for name, lost_here in by_stage.items() if lost_here)
            worst = max(by_stage, key=lambda name: by_stage[name])
            low, high = exact_share(len(lost), count)
            share = f"{len(lost) / count:.0%} [{low:.0%}, {high:.0%}]"
            said = f"The application loses {len(lost):,} of {count:,} rows ({share})" + (
                f": {where}." if where else "."
            )
            advice = f"Begin with the stage {worst}: each query that it loses is listed."
            yield STAGES.finding(
                "problem" if lost else "ok", said, advice=advice, value=len(lost) / count, low=low, high=high
            )

    def section(self) -> Section:
        """How many rows are left after each stage."""
        columns = (
            Column("stage"),
            Column("has", ","),
            Column("of", ","),
            Column("share [95 %]", ".0%", bounds=".0%"),
            Column("lost here", ","),
            Column("gives, median", ",.0f"),
        )
        rows: list[tuple[Value, ...]] = []
        for name in self.names:
            has, of = self.left(name)
            lost = sum(one.lost_at == name for one in self.traces.values())
            sizes = median(len(one.stages[name]) for one in self.traces.values() if name in one.stages)
            rows.append((name, has, of, Estimate(has / of, *exact_share(has, of)), lost, sizes))
        return Section("The application's stages", [Table(columns, rows)])

    def figures(self) -> Iterator[AnswerFigure]:
        for name in self.names:
            has, of = self.left(name)
            low, high = exact_share(has, of)
            yield AnswerFigure("found", has / of, name, low, high, of)

    def as_json(self) -> dict[str, Any]:
        left = {name: self.left(name) for name in self.names}
        return {"object": self.name, "left": {name: {"has": has, "of": of} for name, (has, of) in left.items()}}


def asked(
    application: Application, queries: Sequence[str], progress: Callable[[str, int, int], None]
) -> dict[str, Stages]:
    """The stages of each query, for which the application is asked once.

    Raises:
        StageError: if it fails, or gives something else.
    """
    found = {}
    for query in dict.fromkeys(queries):
        found[query] = application.stages(query)
        progress(f"queries asked of {application.name}", 1, len(queries))
    return found


def traced(
    application: Application,
    answers: Mapping[str, Stages],
    queries: Sequence[str],
    wanted: Sequence[frozenset[str]],
    gathered: StoreScan,
) -> StageTraces:
    """Each case through the stages.

    Args:
        wanted: of each case, the ids that would serve: the rows', and those of rows with the same text.

    Raises:
        StageError: if the store has no ids, or none of a stage's is in it.
    """
    if gathered.ids is None:
        raise StageError(
            "The store has no ids with which those of the stages could be compared.", next_step="--id COLUMN"
        )
    known, findings = _known(application.name, answers, gathered.ids, gathered.texts)
    before = application.before or inferred(list(known.values()))
    traces = {
        place: trace_of(known[query], own, before)
        for place, (query, own) in enumerate(zip(queries, wanted, strict=True))
        if own
    }
    return StageTraces(application.name, traces, tuple(findings))


def ids_that_serve(cases: Sequence[Sequence[ExpectedRow]], gathered: StoreScan) -> list[frozenset[str]]:
    """Of each case's rows, their ids and those of rows with the same text: a copy shows what was asked for."""
    ids_of: dict[str, set[str]] = {row.text: set() for rows in cases for row in rows if row.text}
    for one, text in zip(gathered.ids or (), gathered.texts or (), strict=False):
        if text in ids_of:
            ids_of[text].add(one)
    return [
        frozenset(row.id for row in rows if row.id is not None).union(*(ids_of.get(row.text or "", ()) for row in rows))
        for rows in cases
    ]


def _known(
    name: str, answers: Mapping[str, Stages], ids: Sequence[str], texts: Sequence[str] | None
) -> tuple[dict[str, Stages], list[Finding]]:
    """The stages with the store's ids: a document without one of these is known by its text."""
    all_ids = set(ids)
    by_text = dict(zip(texts or (), ids, strict=False))
    unknown: dict[str, list[StageRow]] = {}
    given: dict[str, int] = {}
    known: dict[str, Stages] = {}
    for query, stages in answers.items():
        own: dict[str, tuple[StageRow, ...]] = {}
        for stage, rows in stages.items():
            given[stage] = given.get(stage, 0) + len(rows)
            own[stage] = tuple(
                row if row.id in all_ids else StageRow(by_text.get(row.text or "", row.id), row.score, row.text)
                for row in rows
            )
            strange = [row for row, found in zip(rows, own[stage], strict=True) if found.id not in all_ids]
            unknown.setdefault(stage, []).extend(strange)
        known[query] = own
    findings = []
    for stage, strange in unknown.items():
        if not given[stage]:
            asked_of = "any query" if len(answers) > 1 else "this query"
            findings.append(EMPTY_STAGE.finding("look", f"The stage {stage} gives nothing for {asked_of}."))
        elif strange:
            said = _strange(stage, strange, given[stage], ids)
            if len(strange) == given[stage]:
                raise StageError(
                    f"{name}: {said}", next_step="Let it give the store's ids, or name their column: --id COLUMN"
                )
            advice = "Let it give the store's ids, or name their column: --id COLUMN"
            findings.append(STAGE_IDS.finding("look", said, advice=advice))
    return known, findings


def _strange(stage: str, strange: Sequence[StageRow], given: int, ids: Sequence[str]) -> str:
    """Which ids of a stage are not the store's."""
    names = list(dict.fromkeys(quoted(row.id) if row.id else "one without an id" for row in strange))
    first = next((row for row in strange if row.id), strange[0])
    count = f"{len(strange):,} of {given:,}" if given > 1 else "The only one"
    said = f"{count} ids that the stage {stage} gives are not in the store: {first_of(names)}."
    if given == 1:
        said = f"The only id that the stage {stage} gives is not in the store: {names[0]}."
    near = near_ids(first.id, ids) if first.id else []
    if near:
        said += f" Ids that look like {quoted(first.id)}: {', '.join(near)}."
    elif first.is_number:
        said += f" {first.id} is a number, and the store's ids are texts such as {quoted(ids[0])}."
    return said
