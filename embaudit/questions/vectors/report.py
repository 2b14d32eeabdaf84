"""Looks at an index, alone or against a checkpoint, and says what follows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from embaudit.checkpoint import TextKind
from embaudit.declared.document import Page
from embaudit.declared.rule import Finding, Level, Rule
from embaudit.declared.table import Row
from embaudit.embedders.function import EmbeddingFunction
from embaudit.embedders.kept import cost_line
from embaudit.questions.report import HOW_IT_IS_READ, AnswerFigure, CrowdingRow, Report, WrongRow, wrong_row
from embaudit.questions.vectors.against import SampleComparison, explain_sample, measure_sample
from embaudit.questions.vectors.alone import Progress, VectorProfile, look_at_alone
from embaudit.questions.vectors.builder import builder_findings
from embaudit.questions.vectors.crowding import CROWDING, Crowding, sentinels_for
from embaudit.questions.vectors.embedded import Embedded, read_as_embedded
from embaudit.questions.vectors.every_row import ForeignRows
from embaudit.questions.vectors.expected import ABSENT, Completeness
from embaudit.questions.vectors.findings import (
    NO_TEXTS,
    OTHER_VECTORS,
    another_dimension,
    findings_against,
    findings_alone,
)
from embaudit.questions.vectors.forms import as_rows_were_built, finding_of_role, role_of_rows
from embaudit.questions.vectors.page import stored_page
from embaudit.questions.vectors.profile import EXACT, SomeRows, joined, rows_of
from embaudit.questions.vectors.reasons import Reason
from embaudit.questions.vectors.since.inspected import MOST_KNOWN
from embaudit.questions.vectors.since.open_rows import rows_of_open
from embaudit.stores.store import Store
from embaudit.words.errors import EXIT_INTERRUPTED
from embaudit.words.sentences import within

if TYPE_CHECKING:
    from embaudit.questions.vectors.since.look import SinceLast

# Rules of what an index lacks (``expected.py``): its vectors may be all right.
INCOMPLETE = ("absent_rows", "changed_texts", "fewest_rows")
Verdict = Literal["wholly its own", "not wholly its own", "sound", "not sound", "not whole", "could not be told"]
SAMPLED = 1_000
# Of the sample, rows that are not the function's.
WHOLLY = 0.95
# The rule of the finding that there is nothing to look at.
NOTHING = Rule(
    "no_vectors",
    problem_if="no row has a vector",
    reason="there is nothing to search. `not measured` if there are no rows",
)
NO_TEXT = Rule(
    "no_text", look_if="rows have a vector and no text", reason="they could not be compared, and are in no share"
)


@dataclass(frozen=True)
class StoredReport(Report):
    """What came of looking at stored vectors.

    Attributes:
        index: as the user named it.
        against: None without a checkpoint, or if no row can be compared.
        checkpoint: as the user named it; empty without one.
        every_row: None unless all rows were asked for.
        embedded: what was embedded of some rows or all, if it is not the text column alone and was found.
        role: what rows were held against as: texts, documents; None if none were.
        completeness: None unless it was said what the index should hold.
        since: None unless what came since the last time was looked at by itself: everything above is of the other rows.
    """

    levels: ClassVar[Mapping[str, Level]] = {
        "wholly its own": "ok",
        "sound": "ok",
        "not wholly its own": "problem",
        "not sound": "problem",
        "not whole": "problem",
        "could not be told": "not measured",
    }

    index: Store
    alone: VectorProfile
    checkpoint: str = ""
    against: SampleComparison | None = None
    every_row: ForeignRows | None = None
    findings: tuple[Finding, ...] = ()
    seconds: float = 0.0
    embedded: Embedded | None = None
    role: TextKind | None = None
    completeness: Completeness | None = None
    since: SinceLast | None = None

    @property
    def crowding(self) -> Crowding | None:
        """What sentinels found in the whole index; None if none were asked, or its rows are not the function's."""
        if self.since is not None:
            return self.since.crowding
        return self.alone.crowding if self.against is not None and self.against.is_mostly_own else None

    @property
    def verdict(self) -> Verdict:
        problems = [finding.name for finding in self.findings if finding.level == "problem"]
        is_wrong = bool(problems)
        if is_wrong and problems[0] in INCOMPLETE:
            return "not whole"
        if is_wrong and set(problems) <= {CROWDING.name, *INCOMPLETE}:
            return "not sound"
        if self.checkpoint:
            if is_wrong:
                return "not wholly its own"
            is_told = self.against is not None and self.against.share is not None
            return "wholly its own" if is_told else "could not be told"
        if not self.alone.profile.dimensions:
            return "could not be told"
        return "not sound" if is_wrong else "sound"

    @property
    def line(self) -> str:
        """The verdict in one line."""
        if self.since is not None and self.verdict != "not whole":
            return self.since.line
        match self.verdict:
            case "wholly its own":
                assert self.against is not None
                assert self.against.share is not None
                high = self.against.share[2]
                is_exact = self.against.is_exact or (self.every_row is not None and self.every_row.is_whole)
                sample = f", as far as the sample says (at most {high:.2%} of the rows are not, 95 % interval)"
                return f"The index is wholly the {self.against.kind}'s{EXACT if is_exact else sample}{self.and_look}."
            case "sound":
                return f"Nothing wrong was found in the vectors alone{self.and_look}."
            case "could not be told" if not self.checkpoint:
                cause = next(finding for finding in self.findings if finding.name == NOTHING.name)
                return f"Nothing could be told: {within(cause.sentence)}"
            case "could not be told":
                return f"Cannot tell whether {self.checkpoint} built this index{self.and_look}."
            case _:
                cause = next(finding for finding in self.by_level() if finding.level == "problem")
                kind = "checkpoint" if self.against is None else self.against.kind
                start = f"The index is not wholly the {kind}'s" if self.checkpoint else "The vectors are not sound"
                start = "The index is not whole" if self.verdict == "not whole" else start
                start = "The index is not sound" if cause.name == CROWDING.name else start
                return f"{start}: {within(cause.sentence)}"

    @property
    def exit_code(self) -> int:
        is_whole = self.every_row is None or self.every_row.is_whole
        return super().exit_code if is_whole else EXIT_INTERRUPTED

    def page(self) -> Page:
        return stored_page(self)

    def answer_figures(self) -> Iterator[AnswerFigure]:
        profile = self.alone.profile
        counts = {"zeros": len(profile.zeros), "not_finite": len(profile.not_finite)}
        counts |= {"without_vector": profile.without_vector, "without_text": profile.rows - profile.comparable}
        if self.since is not None:
            yield from self.since.figures()
        else:
            yield AnswerFigure("rows", profile.rows if self.index.drawn is None else self.index.drawn.rows)
        for name, count in counts.items():
            yield AnswerFigure(name, count, of=profile.rows)
        yield AnswerFigure("dimensions", profile.dimension)
        if (copied := self.alone.copies) is not None:
            yield AnswerFigure("copies", copied.repeating, of=copied.rows)
        if self.crowding is not None:
            yield AnswerFigure("crowding", len(self.crowding.crowding), of=self.crowding.rows)
        if self.completeness is not None:
            for name, count in self.completeness.counts.items():
                yield AnswerFigure(name, count, of=self.completeness.expected)
        if self.against is not None and self.against.share is not None:
            value, low, high = self.against.share
            yield AnswerFigure("foreign", value, low=low, high=high, of=int(self.against.compared.sum()))
        if self.every_row is not None:
            yield AnswerFigure("foreign_rows", self.every_row.count, of=self.every_row.compared)

    def content(self) -> dict[str, Any]:
        return {
            "index": self.index.shown,
            "kind": self.index.kind,
            "metric": self.index.metric,
            "notes": list(self.index.notes),
            "columns": dict(self.index.columns),
            "numbers": self.index.numbers,
            "rows_of_the_store": self.index.rows if self.index.drawn is None else self.index.drawn.rows,
            "row_groups": None if self.index.drawn is None else [len(self.index.drawn.starts), self.index.drawn.groups],
            "vectors": self.alone.as_json(),
            "against": None if self.against is None else self.against.as_json(),
            "every_row": None if self.every_row is None else self.every_row.as_json(),
            "completeness": None
            if (whole := self.completeness) is None
            else {"expected": whole.expected, **whole.counts},
            "crowding": None if self.crowding is None else self.crowding.as_json(),
            "what_was_embedded": None if self.embedded is None else self.embedded.as_json(),
            "since_last": None if self.since is None else self.since.as_json(),
        }

    def rows(self) -> dict[type[Row], list[dict[str, Any]]]:
        return {
            WrongRow: list(self._wrong_rows()),
            CrowdingRow: [] if self.crowding is None else list(self.crowding.rows_of_table()),
        }

    def _wrong_rows(self) -> Iterator[dict[str, Any]]:
        if self.since is not None:
            yield from rows_of_open(self.since.open_rows)
        elif self.against is not None:
            foreign = self.against.rows.at(np.flatnonzero(self.against.is_foreign))
            for number, row in zip(foreign.numbers, foreign.ids, strict=True):
                yield wrong_row(f"row {number + 1:,}" if row is None else row, OTHER_VECTORS.name)
            if self.crowding is not None:
                yield from (wrong_row(hub.label, CROWDING.name) for hub in self.crowding.problems)
        if self.completeness is not None:
            yield from (wrong_row(row, ABSENT.name) for row in self.completeness.absent[:MOST_KNOWN])

    def causes(self) -> Sequence[str]:
        # Of rows that came on another night, the same is another problem.
        of_looks = () if self.since is None else self.since.open_rows.open
        return [f"{name} since {group.since[name].isoformat()}" for group, name in of_looks]

    def accept(self, until: datetime) -> StoredReport:
        if self.since is None:
            return self
        since, before = self.since.accept(until), set(self.since.findings())
        others = (one for one in self.findings if one not in before)
        return replace(self, since=since, findings=(*since.findings(), *others))

    def remember(self) -> None:
        if self.since is not None:
            self.since.keep()


def look_at(
    index: Store,
    function: EmbeddingFunction | None = None,
    *,
    rows: int = SAMPLED,
    seed: int = 0,
    also: Sequence[str] = (),
    load: Callable[[str], EmbeddingFunction] | None = None,
    role: TextKind | None = None,
    every_row: Callable[[Store, SampleComparison, EmbeddingFunction], ForeignRows] | None = None,
    with_explanation: bool = True,
    with_sentinels: bool = True,
    progress: Progress = lambda what, done, total: None,
    say: Callable[[str], None] = lambda line: None,
) -> StoredReport:
    """Look at an index.

    Args:
        function: the one that may have built it.
        rows: how many rows are encoded again.
        also, load: as for ``compare_sample``.
        role: what a checkpoint's rows must be encoded as; by default, what they tell themselves.
        every_row: looks at all rows, given what the sample says.
        with_sentinels: whether rows that crowd are looked for.
        say: told what the sample says before all rows are encoded, which may take hours.
    """
    start = time.monotonic()
    asking = function if with_sentinels and load is not None else None
    alone = look_at_alone(
        index, seed, progress, lambda profile: None if asking is None else sentinels_for(asking, profile, say)
    )
    findings = list(findings_alone(index, alone))
    against = found = embedded = None
    if not alone.profile.dimensions:
        findings.append(_nothing_to_measure(alone))
    if function is not None and load is not None and alone.profile.dimensions:
        sample = alone.profile.sample.with_text
        sample = sample.at(np.arange(min(rows, len(sample))))
        if len(sample):
            if function.checkpoint is None:
                more = "then every row's" if every_row is not None else ""
                say(cost_line(function, [text or "" for text in sample.texts], more, "document"))
            function = as_rows_were_built(function, sample, index.rounded, role)
            role = role_of_rows(function)
            if (said := finding_of_role(function)) is not None:
                findings.append(said)
            against, ours = measure_sample(function, sample, alone.profile.comparable, progress, index.rounded)
            known: list[Reason] = []
            if with_explanation and against.differs.any() and not against.is_another_dimension:
                told = read_as_embedded(index, function, against, ours, alone.profile, progress)
                if told is not None:
                    embedded, index, against, ours, known = told
                    findings.append(embedded.finding(function.kind, is_most=index.template is not None))
            against = explain_sample(
                function,
                against,
                ours,
                near=lambda numbers: _fetched(index, numbers, alone.profile.dimension),
                also=also,
                load=load,
                with_explanation=with_explanation,
                known=known,
                progress=progress,
            )
            against = replace(against, drawn=index.drawn)
            crowding = alone.crowding if against.is_mostly_own else None
            findings = [*findings_against(alone, against), *findings, *(crowding.findings() if crowding else ())]
            if every_row is not None and not against.is_another_dimension:
                so_far = StoredReport(index, alone, function.name, against, findings=tuple(findings))
                say(f"So far: {so_far.line} Every row comes next.")
                found = every_row(index, against, function)
                if found.is_whole:
                    # What is left to do is said by the exact ones.
                    findings = [replace(one, advice="") if one.name == OTHER_VECTORS.name else one for one in findings]
                findings = [*found.findings(), *findings]
        else:
            findings = [*_without_texts(index, alone, function), *findings]
    if function is None or _is_of_another(alone, against, function):
        findings += builder_findings(alone, is_named_only=function is not None)
    if index.has_texts and 0 < alone.profile.comparable < alone.profile.usable.sum():
        lacking = int(alone.profile.usable.sum()) - alone.profile.comparable
        findings.append(
            NO_TEXT.finding(
                "look",
                f"{lacking:,} of {alone.profile.rows:,} rows have a vector and no text.",
                "They could not be compared, and are in no share above.",
                "To have them compared, export their texts.",
                value=float(lacking),
            )
        )
    findings += [HOW_IT_IS_READ.finding("look", note) for note in index.notes]
    name = "" if function is None else function.name
    took = time.monotonic() - start
    read_as = None if against is None else role
    return StoredReport(index, alone, name, against, found, tuple(findings), took, embedded, read_as)


def _is_of_another(alone: VectorProfile, against: SampleComparison | None, function: EmbeddingFunction) -> bool:
    """Whether hardly a row is the function's, so that it is of use who built them."""
    if against is None:
        return bool(alone.profile.dimensions) and alone.profile.dimension != dimension_of(function)
    is_wholly = against.share is not None and against.share[0] >= WHOLLY
    return against.is_another_dimension or is_wholly


def _fetched(index: Store, numbers: Sequence[int], dimension: int) -> SomeRows:
    wanted = np.array(numbers, dtype=np.int64)
    return joined((rows_of(batch, wanted, dimension) for batch in index.batches()), dimension)


def _of(index: Store) -> str:
    names = ", ".join(index.fields[:8])
    return f" (of {names})" if names else ""


def dimension_of(function: EmbeddingFunction) -> int:
    """How many numbers its vectors have; asked for if it is not known."""
    return function.dimension or int(function.encode(["a"], "document").vectors.shape[1])


def _nothing_to_measure(alone: VectorProfile) -> Finding:
    rows = alone.profile.rows
    none = "The one row has no vector." if rows == 1 else f"None of {rows:,} rows has a vector."
    sentence = none if rows else "The index is empty: it has no rows."
    return NOTHING.finding("problem" if rows else "not measured", sentence, advice="Export it again.")


def _without_texts(index: Store, alone: VectorProfile, function: EmbeddingFunction) -> list[Finding]:
    """What can be told without texts: the dimension."""
    usual = alone.profile.dimension
    own = dimension_of(function)
    if usual > own:
        return [another_dimension(usual, own, function.kind)]
    fits = "as many as" if usual == own else "fewer than"
    if index.has_texts:
        return [
            NO_TEXTS.finding(
                "not measured",
                f"No row of {index.shown} has a text and a vector that can be compared; it has {usual:,} dimensions, "
                f"{fits} the {function.kind}'s {own:,}.",
                "What is said here is of the vectors alone.",
                "Export it again, every row with its text; or give the texts: --texts FILE",
            )
        ]
    return [
        NO_TEXTS.finding(
            "not measured",
            f"{index.shown} has no texts, so no vector can be compared; it has {usual:,} dimensions, {fits} the "
            f"{function.kind}'s {own:,}.",
            "What is said here is of the vectors alone.",
            f"Name the column of texts: --text COLUMN{_of(index)}; or their file, row by row or with ids: --texts FILE"
            + (
                "; or join another table: --from 'SELECT …'" if index.kind in ("SQLite", "DuckDB", "PostgreSQL") else ""
            ),
        )
    ]
