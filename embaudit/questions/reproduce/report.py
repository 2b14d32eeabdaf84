"""Whether published scores are reached: the declared reading's, and those of the readings that would reach them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, Literal

from embaudit.checkpoint import Checkpoint
from embaudit.declared.document import Column, Page, Section, Table
from embaudit.declared.rule import Finding, Level, Rule, number
from embaudit.measures.quality.material import Collection
from embaudit.questions.question import Progress
from embaudit.questions.report import AnswerFigure, Report
from embaudit.questions.reproduce.readings import PublishedScore, ScoredReading, declared_reading, other_readings

Verdict = Literal["reproduced", "another reading", "not reproduced"]
# What half precision, other batches and another version of a library move a score by; docs/reproduce.md has measured
# some. Another limit or prompt moves it by more, or changes little.
WITHIN = 0.002
# What is left of it in float32. Readings that differ in two things are many, so that some come within the first by
# chance; and the search for a reading ends only with one that is as near as this.
EXACTLY = 0.0002
PUBLISHED = Rule(
    "published",
    "the published score − that on the data given, as declared",
    problem_if=f"further apart than {number(WITHIN)}",
    reason="the same texts are scored, so that nothing is left to chance: half precision, batches and versions of "
    "libraries move a score by less",
)
READING = Rule(
    "reading",
    "the score of every other reading (pooling, similarity, dimensions, prompts, limit, special tokens, case)",
    look_if=f"one reaches every published score to {number(WITHIN)}, or to {number(EXACTLY)} if it differs in two "
    "things, and the declared one does not; `not measured`: none does",
    reason="a reading that is tried may come near by chance, the more so on one task: which one was published is known "
    "to whoever published it",
)


@dataclass(frozen=True)
class ReproduceReport(Report):
    """What came of it.

    Attributes:
        published: each score, with its data.
        readings: the declared one first, the others in the order in which they were tried.
    """

    levels: ClassVar[dict[str, Level]] = {
        "reproduced": "ok",
        "another reading": "problem",
        "not reproduced": "problem",
    }

    checkpoint: str
    checkpoint_id: str
    published: tuple[PublishedScore, ...]
    readings: tuple[ScoredReading, ...]
    findings: tuple[Finding, ...] = ()
    seconds: float = 0.0

    @property
    def verdict(self) -> Verdict:
        if self.reaches(self.readings[0]):
            return "reproduced"
        return "another reading" if self.reaching else "not reproduced"

    def reaches(self, reading: ScoredReading) -> bool:
        """Whether a reading has every published score."""
        return self.furthest(reading) <= (EXACTLY if reading.is_double else WITHIN)

    @property
    def reaching(self) -> list[ScoredReading]:
        """The readings that do, the nearest first."""
        return sorted(filter(self.reaches, self.readings), key=self.furthest)

    def furthest(self, reading: ScoredReading) -> float:
        """How far it is from the score that it misses most."""
        return max(abs(one.score.score - reading.scores[one.data.name]) for one in self.published)

    @property
    def line(self) -> str:
        count = len(self.published)
        said = f"the published score of {self.published[0].part}" if count == 1 else f"{count} published scores"
        match self.verdict:
            case "reproduced":
                return f"As declared, it reproduces {said}."
            case "another reading":
                names = _or([one.name for one in self.reaching])
                return f"As declared, it does not reproduce {said}; with {names}, it does."
            case _:
                return (
                    f"It does not reproduce {said}, as declared or in any of {len(self.readings) - 1} other readings."
                )

    def page(self) -> Page:
        identity = [("checkpoint", self.checkpoint_id), ("took", f"{self.seconds:.0f} s")]
        revisions = list(dict.fromkeys(one.score.revision for one in self.published if one.score.revision))
        if revisions:
            identity.append(("published of revision", ", ".join(revisions)))
        return Page(self.checkpoint, identity, self.told(), list(self._sections()), kind="Published scores of")

    def _sections(self) -> Iterator[Section]:
        data = [Column("published of"), Column("read", is_prose=True), Column("score"), Column("published", ".4f")]
        rows = [
            (one.part, _read(one), _metric(one), one.score.score, self.readings[0].scores[one.data.name])
            for one in self.published
        ]
        yield Section("What was published", [Table([*data, Column("as declared", ".4f")], rows)])
        names = [Column(one.part, ".4f") for one in self.published]
        nearest = sorted(self.readings, key=self.furthest)
        of_readings = [
            (one.name, *(one.scores[some.data.name] for some in self.published), "yes" if self.reaches(one) else "")
            for one in nearest
        ]
        columns = [Column("reading", is_prose=True), *names, Column("reaches all")]
        yield Section("Readings, the nearest first", [Table(columns, of_readings)])

    def content(self) -> dict[str, Any]:
        return {
            "checkpoint": self.checkpoint,
            "checkpoint_id": self.checkpoint_id,
            "within": WITHIN,
            "published": [
                {
                    **{name: getattr(one.score, name) for name in ("task", "split", "subset", "revision", "score")},
                    "metric": _metric(one),
                    "data": one.data.name,
                    "declared": self.readings[0].scores[one.data.name],
                }
                for one in self.published
            ],
            "readings": [asdict(one) | {"reaches": self.reaches(one)} for one in self.readings],
        }

    def answer_figures(self) -> Iterator[AnswerFigure]:
        for one in self.published:
            yield AnswerFigure("published", one.score.score, one.part)
            for reading in self.readings:
                item = one.part if reading is self.readings[0] else f"{one.part}, {reading.name}"
                yield AnswerFigure(_metric(one), reading.scores[one.data.name], item)


def reproduce(
    name: str, checkpoint: Checkpoint, published: Sequence[PublishedScore], progress: Progress
) -> ReproduceReport:
    """Score the checkpoint as it is declared; where that is not what was published, look for the reading that was."""
    start = time.perf_counter()
    declared, measured = declared_reading(checkpoint, [one.data for one in published], progress.done)
    report = ReproduceReport(name, checkpoint.checkpoint_id, (*published,), (declared,))
    readings = [declared]
    if not report.reaches(declared):
        for found in other_readings(checkpoint, measured, progress.done):
            readings += found
            if any(report.furthest(one) <= EXACTLY for one in found):
                break
    report = replace(report, readings=(*readings,))
    return replace(report, findings=(*findings_of(report),), seconds=time.perf_counter() - start)


def findings_of(report: ReproduceReport) -> Iterator[Finding]:
    """Of each published score, and of the readings that reach them all where the declared one does not."""
    declared, tried = report.readings[0], len(report.readings) - 1
    for one in report.published:
        here = declared.scores[one.data.name]
        apart = one.score.score - here
        level: Level = "ok" if abs(apart) <= WITHIN else "problem"
        which = "above" if apart > 0 else "below"
        of = f"{_metric(one)} of {one.part} was published as {one.score.score:.4f}, and is {here:.4f} as declared here"
        yield PUBLISHED.finding(
            level,
            f"{of}, on {_read(one)}."
            if level == "ok"
            else f"{of}: what was published is {abs(apart):.4f} {which} it, on {_read(one)}.",
            "Who chose it by that score gets another one: it was published of another reading, revision or data.",
            "Declare the reading that reaches it."
            if report.reaching
            else "Compare the data, the split and the revision with those that were published.",
            # To the digits that are told.
            round(apart, 4),
        )
    if report.reaches(declared):
        return
    if reaching := report.reaching:
        files = ", ".join(dict.fromkeys(one.file for one in reaching))
        yield READING.finding(
            "look",
            f"{_capital(_or([one.name for one in reaching]))} reaches it: "
            f"{_all_scores(report, reaching[0])}; {tried} other readings were tried.",
            f"What was published was probably read so, and the checkpoint does not say so itself ({files}).",
            f"Declare it in {files}; another task's score (--mteb, --data) tells whether it is chance.",
        )
    else:
        nearest = min(report.readings, key=report.furthest)
        yield READING.finding(
            "not measured",
            f"None of {tried} other readings reaches it; the nearest is {nearest.name} "
            f"({_all_scores(report, nearest)}).",
            "The data, the revision, or a prompt that is not among these may be another.",
            "Try a prompt that you know: --prompt TEXT, --query-prompt TEXT.",
        )


def _all_scores(report: ReproduceReport, reading: ScoredReading) -> str:
    return ", ".join(
        f"{reading.scores[one.data.name]:.4f} where {one.score.score:.4f} was published" for one in report.published
    )


def _metric(one: PublishedScore) -> str:
    return "nDCG@10" if isinstance(one.data, Collection) else "Spearman's ρ"


def _read(one: PublishedScore) -> str:
    if isinstance(one.data, Collection):
        return f"{len(one.data.queries):,} queries and {len(one.data.documents):,} documents"
    return f"{len(one.data.scores):,} pairs"


def _or(names: Sequence[str]) -> str:
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]
