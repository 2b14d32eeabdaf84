"""Downstream scores: read from other tools' files and folders, and correlated with audit measures.

Files hold rows (csv, tsv, json, jsonl) or MTEB's results, which ``formats`` parses. The correlation is Spearman's rho
between audit measures and scores of checkpoints (arXiv 2604.27398).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import permutations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy

from embaudit.corpora.scores.formats import (
    EXPERIMENTS,
    MODEL_META,
    NOTHING_IMPORTED,
    SEPARATORS,
    Score,
    SkippedSource,
    is_mteb_result,
    json_line_scores,
    json_scores,
    mteb_scores,
    separated_scores,
)
from embaudit.system.small_files import parsed, small_bytes
from embaudit.words.errors import UsageError

JSON_LINES = (".jsonl", ".ndjson")
SUFFIXES = (*SEPARATORS, ".json", *JSON_LINES)


@dataclass(frozen=True)
class ReadScores:
    """The result of reading score files.

    Attributes:
        scores: unique by checkpoint, revision, task, split and subset.
        files: number of files they come from.
        repeated: number of repeated scores (with the same value).
    """

    scores: list[Score]
    files: int
    repeated: int
    skipped: list[SkippedSource]


def read_scores(paths: Sequence[Path], checkpoint: str | None = None) -> ReadScores:
    """Read score files, and folders of MTEB results.

    Args:
        checkpoint: name of the checkpoint, overriding the files.

    Raises:
        UsageError: if a file cannot be read, a row is invalid, the checkpoint is unknown, two rows contradict each
            other, or ``checkpoint`` is given for scores of several checkpoints.
    """
    scores: list[Score] = []
    skipped: list[SkippedSource] = []
    for path in paths:
        found = _folder(path, checkpoint) if path.is_dir() else _file(path, checkpoint)
        for one in found:
            if isinstance(one, SkippedSource):
                skipped.append(one)
            else:
                scores.append(one)
    if not scores:
        why = f" ({skipped[0].origin}: {skipped[0].why})" if skipped else ""
        raise UsageError(
            f"No scores in {', '.join(map(str, paths))}{why}.",
            kept=NOTHING_IMPORTED,
            next_step="Give csv, tsv, json or jsonl with checkpoint, task and score, or MTEB results.",
        )
    if checkpoint:
        scores = _under_one_name(scores, checkpoint)
    distinct = _without_repeats(scores)
    return ReadScores(distinct, len({one.origin for one in scores}), len(scores) - len(distinct), skipped)


def _folder(folder: Path, checkpoint: str | None) -> Iterator[Score | SkippedSource]:
    """Every MTEB result below a folder, sorted by name."""
    paths = sorted(path for path in folder.rglob("*.json") if path.is_file() and path.name != MODEL_META)
    if not paths:
        raise UsageError(
            f"{folder} contains no .json files.",
            kept=NOTHING_IMPORTED,
            next_step="Give a folder of MTEB results, or a csv, tsv, json or jsonl file.",
        )
    for path in paths:
        if EXPERIMENTS in path.relative_to(folder).parts[:-1]:
            yield SkippedSource(str(path), "an experiment: the checkpoint under other settings")
            continue
        value = _parsed(path, _text(path))
        if is_mteb_result(value):
            yield from mteb_scores(path, value, checkpoint)
        else:
            yield SkippedSource(str(path), "not an MTEB result")


def _file(path: Path, checkpoint: str | None) -> Iterable[Score | SkippedSource]:
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise UsageError(
            f"{path} is not in a supported score format.",
            kept=NOTHING_IMPORTED,
            next_step=f"Give a file ending in {', '.join(SUFFIXES)}, or a folder of MTEB results.",
        )
    text = _text(path)
    if suffix in SEPARATORS:
        return separated_scores(path, text, checkpoint)
    if suffix in JSON_LINES:
        return json_line_scores(path, text, checkpoint)
    value = _parsed(path, text)
    if is_mteb_result(value):
        return mteb_scores(path, value, checkpoint)
    if not isinstance(value, list):
        raise UsageError(
            f"{path} is JSON, but neither a list of scores nor an MTEB result.",
            kept=NOTHING_IMPORTED,
            next_step="Write a list of objects with checkpoint, task and score.",
        )
    return json_scores(path, value, checkpoint)


def _text(path: Path) -> str:
    try:
        return small_bytes(path).decode("utf-8-sig")
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read: {error.strerror or error}.",
            kept=NOTHING_IMPORTED,
            next_step="Check the name of the file, and who may read it.",
        ) from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8.", kept=NOTHING_IMPORTED, next_step="Save it as UTF-8.") from error


def _parsed(path: Path, text: str) -> Any:
    try:
        return parsed(text)
    except ValueError as error:
        raise UsageError(
            f"{path} is not JSON: {error}.",
            kept=NOTHING_IMPORTED,
            next_step="Write it as JSON, or as CSV with a name that ends in .csv.",
        ) from error


def _under_one_name(scores: list[Score], checkpoint: str) -> list[Score]:
    """All scores under one name; they must be of one checkpoint."""
    names = sorted({one.checkpoint for one in scores} - {checkpoint})
    if len(names) > 1 or (names and any(one.checkpoint == checkpoint for one in scores)):
        shown = ", ".join([*names[:3], "…"] if len(names) > 3 else names)
        raise UsageError(
            f"--checkpoint {checkpoint} is one name, and these are scores of several checkpoints: {shown}.",
            kept=NOTHING_IMPORTED,
            next_step="Leave --checkpoint out, or import one checkpoint's files at a time.",
        )
    return [replace(one, checkpoint=checkpoint) for one in scores]


def _without_repeats(scores: list[Score]) -> list[Score]:
    """Remove duplicates.

    Raises:
        UsageError: if two rows give it different scores.
    """
    found: dict[tuple[str, ...], Score] = {}
    for one in scores:
        first = found.setdefault(one.key, one)
        if first.score != one.score:
            raise UsageError(
                f"Two scores of {one}: {first.score:g} in {first.origin}, {first.place}, and {one.score:g} in "
                f"{one.origin}, {one.place}.",
                kept=NOTHING_IMPORTED,
                next_step="Delete one of them, or tell them apart by revision, split or subset.",
            )
    return list(found.values())


# Up to here all n! pairings are enumerated (362 880); above, Student's t is close, and is what papers report.
EXACT_UP_TO = 9
MIN_PAIRS = 3
EXACT, STUDENT = "exact", "t"
AVERAGE = "average"


class ScoredMeasure(NamedTuple):
    """One checkpoint's score on a task together with a measure: a row of the view ``score_beside_measure``."""

    checkpoint_id: str
    task: str
    score: float
    measure: str
    corpus: str
    value: float


@dataclass(frozen=True)
class Correlation:
    """Spearman's rho over n checkpoints.

    Attributes:
        rho: None with fewer than three checkpoints, or if one side is constant.
        p: two-sided; None if rho is.
        method: how p was computed: ``exact`` (all n! pairings) or ``t`` (Student's t with n - 2 degrees of freedom).
    """

    n: int
    rho: float | None
    p: float | None
    method: str | None


@dataclass(frozen=True)
class TaskCorrelation:
    """The correlation of one measure on one corpus with one task, or with the average over several."""

    measure: str
    corpus: str
    task: str
    tasks: int
    correlation: Correlation


def correlate(rows: Sequence[ScoredMeasure], *, only_average: bool = False) -> list[TaskCorrelation]:
    """Rho by measure, corpus and task, and for the average over the tasks that all checkpoints have.

    Args:
        only_average: over all tasks of ``rows``; checkpoints that lack one are left out.
    """
    found = []
    for measure, corpus in sorted({(row.measure, row.corpus) for row in rows}):
        mine = [row for row in rows if (row.measure, row.corpus) == (measure, corpus)]
        values = {row.checkpoint_id: row.value for row in mine}
        scores = {(row.checkpoint_id, row.task): row.score for row in mine}
        tasks = sorted({row.task for row in mine})
        for task in () if only_average else tasks:
            found.append(_one(measure, corpus, task, 1, values, {c: s for (c, t), s in scores.items() if t == task}))
        averages, over = average_over_tasks(scores, tasks if only_average else ())
        if only_average or len(over) > 1:
            name = f"{AVERAGE} of {len(over)} task{'s' * (len(over) != 1)}"
            found.append(_one(measure, corpus, name, len(over), values, averages))
    return found


def spearman(values: Sequence[float], scores: Sequence[float]) -> Correlation:
    """Spearman's rho: Pearson's correlation of average ranks, with a two-sided p.

    Args:
        values: (n,) the measure, one per checkpoint.
        scores: (n,) the downstream score in the same order.
    """
    n = len(values)
    if n < MIN_PAIRS or len(set(values)) < 2 or len(set(scores)) < 2:
        return Correlation(n, None, None, None)
    found = scipy.stats.spearmanr(values, scores)
    if n > EXACT_UP_TO:
        return Correlation(n, float(found.statistic), float(found.pvalue), STUDENT)
    return Correlation(
        n, float(found.statistic), _exact_p(scipy.stats.rankdata(values), scipy.stats.rankdata(scores)), EXACT
    )


def average_over_tasks(
    scores: Mapping[tuple[str, str], float], tasks: Sequence[str] = ()
) -> tuple[dict[str, float], list[str]]:
    """Each checkpoint's mean score over the same tasks: averages over different tasks are not comparable.

    Args:
        scores: by checkpoint and task.
        tasks: to average over; checkpoints that lack one are left out. By default those that all checkpoints have.

    Returns:
        The averages by checkpoint, and the tasks.
    """
    by_checkpoint: dict[str, dict[str, float]] = {}
    for (checkpoint, task), score in scores.items():
        by_checkpoint.setdefault(checkpoint, {})[task] = score
    over = set(tasks) or set.intersection(*(set(found) for found in by_checkpoint.values()))
    complete = {one: found for one, found in by_checkpoint.items() if over and over <= set(found)}
    return {one: sum(found[task] for task in over) / len(over) for one, found in complete.items()}, sorted(over)


def _one(
    measure: str, corpus: str, task: str, tasks: int, values: Mapping[str, float], scores: Mapping[str, float]
) -> TaskCorrelation:
    places = sorted(scores)
    both = spearman([values[one] for one in places], [scores[one] for one in places])
    return TaskCorrelation(measure, corpus, task, tasks, both)


def _exact_p(value_ranks: Any, score_ranks: Any) -> float:
    """Twice the smaller tail over all pairings; the correlation is monotonic in the sum of the products of ranks."""
    products = value_ranks[_pairings(len(value_ranks))] @ score_ranks
    seen = float(value_ranks @ score_ranks)
    # Ranks are multiples of 1/2 and products of 1/4, so the comparison is exact.
    tail = min(float(np.mean(products >= seen)), float(np.mean(products <= seen)))
    return min(1.0, 2 * tail)


@cache
def _pairings(n: int) -> Any:
    """(n!, n) int8: every order of n things."""
    return np.array(list(permutations(range(n))), dtype=np.int8)
