"""Score files with one score per row: csv, tsv, json (a list of objects) and jsonl."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from embaudit.corpora.scores.shapes import (
    DEFAULT_SPLIT,
    DEFAULT_SUBSET,
    NOTHING_IMPORTED,
    Score,
    finite_number,
    row_error,
)
from embaudit.words.errors import UsageError

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
