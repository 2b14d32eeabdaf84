"""The stages' figures as files: one JSON file a stage, complete or absent."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from embaudit.system.files import replace_atomically
from embaudit.words.errors import UsageError

FORMAT = 1
# Figures that were committed.
FIGURES = Path(__file__).with_name("figures")


@dataclass(frozen=True)
class StageResult:
    """What a stage found, and on what.

    Attributes:
        limit: of a run that only tried the stage out; such figures are never committed.
        seconds: of the call that finished it; what an interrupted call had done before is not in it.
    """

    stage: str
    limit: int | None
    checkpoint_id: str
    machine: str
    versions: Mapping[str, str]
    seconds: float
    figures: Mapping[str, Any] = field(repr=False)


def write(result: StageResult, folder: Path) -> Path:
    path = folder / f"{result.stage}.json"
    with replace_atomically(path) as partial:
        content = json.dumps({"format": FORMAT, **asdict(result)}, ensure_ascii=False, indent=1, allow_nan=False)
        partial.write_text(_one_row_a_line(content) + "\n", "utf-8")
    return path


def read(stage: str, folder: Path) -> StageResult | None:
    """None if it is not there.

    Raises:
        UsageError: if it is no such file.
    """
    path = folder / f"{stage}.json"
    if not path.is_file():
        return None
    try:
        found = json.loads(path.read_text("utf-8"))
        if found.pop("format") != FORMAT:
            raise ValueError("it is of another format")
        return StageResult(**found)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(
            f"{path} is not the result of a stage: {error}.",
            kept="The other stages are kept.",
            next_step="Delete it: the stage runs again.",
        ) from error


def commit(results: Mapping[str, StageResult], folder: Path = FIGURES) -> None:
    """Put figures where the page is made from.

    Raises:
        UsageError: if one is of a limited run.
    """
    limited = [name for name, result in results.items() if result.limit is not None]
    if limited:
        raise UsageError(
            f"The figures of {limited[0]} are of a run with --limit {results[limited[0]].limit}.",
            kept="Nothing was written.",
            next_step="Run it without --limit.",
        )
    folder.mkdir(exist_ok=True)
    for result in results.values():
        write(result, folder)


def _one_row_a_line(content: str) -> str:
    """Indented JSON with each row of a list on one line, so that a change of one row is a change of one line."""
    lines: list[str] = []
    row: list[str] | None = None
    for line in content.splitlines():
        text = line.strip()
        if row is None and line.startswith("   ") and text == "{":
            row = [line]
        elif row is not None:
            row.append(text if len(row) == 1 or row[-1] == "{" else f" {text}")
            if text in ("}", "},"):
                lines.append(row[0] + "".join(row[1:-1]) + text)
                row = None
        else:
            lines.append(line)
    return "\n".join(lines)
