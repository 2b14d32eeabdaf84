"""Formats of score files, and their common form: a score of one checkpoint on one part of a task.

There are files with one score per row (csv, tsv, json with a list of objects, jsonl), and MTEB's result files, one for
each task of a checkpoint. The latter are,
since mteb 1.11: ``{"task_name": …, "scores": {split: [{"hf_subset": …, "main_score": …}, …]}}``, in a folder
``<owner>__<name>/<revision>/<task>.json`` next to ``model_meta.json`` (name, revision). Before that:
``{"mteb_dataset_name": …, split: {…}}`` or ``{…, split: {subset: {…}}}``, where many tasks have no ``main_score``.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from embaudit.system.small_files import parsed, small_bytes
from embaudit.words.errors import UsageError

# MTEB's names for the split and subset of a task that has only one.
DEFAULT_SPLIT = "test"
DEFAULT_SUBSET = "default"
NOTHING_IMPORTED = "Nothing was imported."


@dataclass(frozen=True)
class Score:
    """One row of ``downstream_score``, without the time of its import.

    Attributes:
        revision: of the checkpoint; "" if the file names none.
        metric: name of the metric; None if the file does not say.
        origin: the file.
        place: location in the file, for errors.
    """

    checkpoint: str
    revision: str
    task: str
    split: str
    subset: str
    score: float
    metric: str | None
    origin: str
    place: str

    @property
    def key(self) -> tuple[str, str, str, str, str]:
        return (self.checkpoint, self.revision, self.task, self.split, self.subset)

    def __str__(self) -> str:
        revision = f" at {self.revision[:12]}" if self.revision else ""
        return f"{self.checkpoint}{revision} on {self.task} ({self.split}, {self.subset})"


@dataclass(frozen=True)
class SkippedSource:
    """A skipped file or part of a file, and why."""

    origin: str
    why: str


def finite_number(value: Any) -> float | None:
    """The value as a float; None if it is not a finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def row_error(origin: str, place: str, why: str) -> UsageError:
    """The error for an invalid row of a file."""
    return UsageError(
        f"{origin}, {place}: {why}", kept=NOTHING_IMPORTED, next_step="Correct or delete that row and import again."
    )


REQUIRED = ("checkpoint", "task", "score")
OPTIONAL = ("revision", "split", "subset", "metric")
SEPARATORS = {".csv": ",", ".tsv": "\t"}


def separated_scores(path: Path, text: str, checkpoint: str | None) -> Iterator[Score]:
    """Scores of a csv or tsv file whose first line names the columns.

    Raises:
        UsageError: if a row is invalid, naming the line and the field.
    """
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=SEPARATORS[path.suffix.lower()], strict=True)
    try:
        columns = [str(name).strip().lower() for name in reader.fieldnames or ()]
        _require_columns(path, columns, checkpoint)
        reader.fieldnames = columns
        for row in reader:
            place = f"line {reader.line_num}"
            if None in row:
                raise row_error(str(path), place, f"{len(columns) + len(row[None])} fields but {len(columns)} columns.")
            yield score_of(path, place, row, checkpoint)
    except csv.Error as error:
        raise row_error(str(path), f"line {reader.reader.line_num}", f"{error}.") from error


def json_scores(path: Path, values: list[Any], checkpoint: str | None) -> Iterator[Score]:
    """Scores of a JSON list of objects."""
    for number, value in enumerate(values, start=1):
        yield _of_object(path, f"row {number}", value, checkpoint)


def json_line_scores(path: Path, text: str, checkpoint: str | None) -> Iterator[Score]:
    """Scores of a file with one JSON object per line."""
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            try:
                value = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise row_error(str(path), f"line {number}", f"not JSON: {error}.") from error
            yield _of_object(path, f"line {number}", value, checkpoint)


def score_of(path: Path, place: str, row: Mapping[str, Any], checkpoint: str | None) -> Score:
    """The score of one row; ``checkpoint`` is used if the row names none.

    Raises:
        UsageError: naming the missing or invalid field.
    """

    def text(field: str, default: str | None = None) -> str:
        value = row.get(field)
        if value is not None and (isinstance(value, bool) or not isinstance(value, str | int)):
            raise row_error(str(path), place, f"{field} is {value!r}.")
        found = "" if value is None else str(value).strip()
        if not found and default is None:
            raise row_error(str(path), place, f"no {field}.")
        return found or default or ""

    score = finite_number(row.get("score"))
    if score is None:
        given = row.get("score")
        why = "no score." if given is None or given == "" else f"the score {given!r} is not a finite number."
        raise row_error(str(path), place, why)
    return Score(
        checkpoint=text("checkpoint", checkpoint),
        revision=text("revision", ""),
        task=text("task"),
        split=text("split", DEFAULT_SPLIT),
        subset=text("subset", DEFAULT_SUBSET),
        score=score,
        metric=text("metric", "") or None,
        origin=str(path),
        place=place,
    )


def _of_object(path: Path, place: str, value: Any, checkpoint: str | None) -> Score:
    if not isinstance(value, dict):
        raise row_error(str(path), place, f"a JSON {type(value).__name__} where an object was expected.")
    return score_of(path, place, {str(name).strip().lower(): field for name, field in value.items()}, checkpoint)


def _require_columns(path: Path, columns: list[str], checkpoint: str | None) -> None:
    wanted = [name for name in REQUIRED if not (name == "checkpoint" and checkpoint)]
    missing = [name for name in wanted if name not in columns]
    if missing:
        raise UsageError(
            f"{path} has no column {' and no column '.join(missing)}; its first line is: "
            f"{', '.join(columns) or '(empty)'}.",
            kept=NOTHING_IMPORTED,
            next_step=f"Required columns: {', '.join(REQUIRED)}; optional: {', '.join(OPTIONAL)}."
            + (" Or give the checkpoint: --checkpoint NAME" if missing == ["checkpoint"] else ""),
        )
    if len(set(columns)) < len(columns):
        raise UsageError(
            f"{path} has duplicate columns: {', '.join(columns)}.",
            kept=NOTHING_IMPORTED,
            next_step="Give each a name of its own.",
        )


MODEL_META = "model_meta.json"
# Results of the same checkpoint under other settings.
EXPERIMENTS = "experiments"
# Main scores before 1.11, in order of preference: retrieval, clustering, STS and summaries, pair classification,
# reranking, classification, bitext mining.
OLD_MAIN_SCORES = (
    ("main_score",),
    ("ndcg_at_10",),
    ("v_measure",),
    ("cos_sim", "spearman"),
    ("cos_sim", "ap"),
    ("map",),
    ("accuracy",),
    ("f1",),
)
# Since then it is beside the metric that it is.
MAIN_SCORES = ("ndcg_at_10", "cosine_spearman", "v_measure", "accuracy", "max_ap", "map", "f1")
OLD_HEAD = ("mteb_dataset_name", "dataset_revision", "mteb_version", "evaluation_time")


def is_mteb_result(value: Any) -> bool:
    """Whether a JSON document is an MTEB result of one task."""
    if not isinstance(value, dict):
        return False
    return ("task_name" in value and isinstance(value.get("scores"), dict)) or "mteb_dataset_name" in value


def mteb_scores(path: Path, result: dict[str, Any], checkpoint: str | None) -> Iterator[Score | SkippedSource]:
    """One score per split and subset; a main score that is null or not finite is reported as skipped.

    Raises:
        UsageError: if nothing names the checkpoint.
    """
    name, revision = checkpoint_of(path)
    name = checkpoint or name
    if not name:
        raise UsageError(
            f"{path} is an MTEB result, but nothing names its checkpoint (no {MODEL_META}, no folder "
            "<owner>__<name>/<revision>).",
            kept=NOTHING_IMPORTED,
            next_step="Give it: --checkpoint owner/name",
        )
    task = str(result["task_name"] if "task_name" in result else result["mteb_dataset_name"])
    parts = list(_parts(result))
    for split, subset, metric, value in parts:
        score = finite_number(value)
        place = f"{split}, {subset}"
        if score is None:
            yield SkippedSource(str(path), f"{place}: the main score is {json.dumps(value)}")
        else:
            yield Score(name, revision, task, split, subset, score, metric, str(path), place)
    if not parts:
        yield SkippedSource(str(path), "no split with scores")


def checkpoint_of(path: Path) -> tuple[str, str]:
    """Name and revision of a result's checkpoint; both "" if unknown."""
    meta = _model_meta(path.parent / MODEL_META)
    name, revision = meta.get("name"), meta.get("revision")
    folder = path.parent.parent.name
    if "__" in folder:
        name = name or folder.replace("__", "/")
        revision = revision or path.parent.name
    revision = str(revision or "")
    return str(name or ""), "" if revision == "no_revision_available" else revision


def _model_meta(path: Path) -> dict[str, Any]:
    try:
        found = parsed(small_bytes(path))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _parts(result: dict[str, Any]) -> Iterator[tuple[str, str, str | None, Any]]:
    """Split, subset, metric and value of every main score."""
    if "task_name" in result:
        for split, entries in result["scores"].items():
            for entry in entries if isinstance(entries, list) else []:
                if isinstance(entry, dict):
                    main = entry.get("main_score")
                    metric = next((name for name in MAIN_SCORES if name in entry and entry[name] == main), "main_score")
                    yield str(split), str(entry.get("hf_subset") or DEFAULT_SUBSET), metric, main
        return
    for split, scores in result.items():
        if split in OLD_HEAD or not isinstance(scores, dict):
            continue
        whole = _old_main_score(scores)
        if whole is not None:
            yield str(split), DEFAULT_SUBSET, *whole
            continue
        subsets = {subset: found for subset, found in scores.items() if isinstance(found, dict)}
        for subset, found in subsets.items():
            yield str(split), str(subset), *(_old_main_score(found) or (None, None))
        if not subsets:
            yield str(split), DEFAULT_SUBSET, None, None


def _old_main_score(scores: dict[str, Any]) -> tuple[str, Any] | None:
    for path in OLD_MAIN_SCORES:
        value: Any = scores
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        if value is not None and not isinstance(value, dict):
            return ".".join(path), value
    return None
