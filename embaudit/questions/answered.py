"""Makes rows of an answer, and the key under which it stands: what was asked, and what it was asked of, by content."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from math import isfinite
from pathlib import Path
from typing import Any

from embaudit.declared.option import PLAIN, Option
from embaudit.declared.table import Row
from embaudit.embedders.opened import is_checkpoint, name_of
from embaudit.questions.answer import AnswerFigureRow, AnswerFindingRow, AnswerRow, WhyCaseRow
from embaudit.questions.question import Question
from embaudit.questions.report import Report
from embaudit.stores.place import StorePlace
from embaudit.system.installed import code_digest
from embaudit.system.keys import content_key
from embaudit.words.errors import EmbauditError
from embaudit.words.masking import masked, without_credentials

# Fields that change how an answer is found, and not what it is.
NOT_ASKED = {"device", "requests_per_minute", "fresh"}
Rows = Mapping[type[Row], Sequence[Mapping[str, Any]]]


def question_key(question: Question) -> str:
    """A key of the question as it was asked: the same one, night after night, has the same."""
    return content_key(asks=question.asks, asked=parameters_of(question))


def parameters_of(question: Question) -> dict[str, Any]:
    """What was given, by name, as JSON has it; objects by their names, addresses without credentials."""
    return {
        name: _as_json(getattr(question, name))
        for name in sorted(question.model_fields_set - NOT_ASKED)
        if getattr(question, name) != type(question).model_fields[name].default
    }


def answer_key(question: Question) -> str | None:
    """A key of the question and of the content of all that it names; None if something of that is live.

    A store's files count by name, size and time of their last change, all other files and checkpoints by content. What
    also writes a file has none either: it is asked for that.
    """
    if getattr(question, "table", None) is not None:
        return None
    parts: dict[str, Any] = {}
    for name, written, value in _named(question):
        for each in value if isinstance(value, list | tuple) else [value]:
            part = _content(written, each)
            if part is None:
                return None
            parts.setdefault(name, []).append(part)
    return content_key(
        question=question_key(question), content=parts, embaudit=version("embaudit"), code=code_digest("embaudit")
    )


def rows_of(question: Question, report: Report, key: str | None, asked: datetime) -> Rows:
    """An answer as rows.

    Args:
        key: ``answer_key`` as it was before the answer was found.
    """
    whole = question_key(question)
    answer_id = key or content_key(question=whole, asked=asked.astimezone(UTC).isoformat())
    subject, function = subjects_of(question)
    answer = {
        "answer_id": answer_id,
        "question_key": whole,
        "asks": question.asks,
        "subject": subject,
        "function": function,
        "question": json.dumps(parameters_of(question), ensure_ascii=False, sort_keys=True),
        "is_live": key is None,
        "verdict": report.verdict,
        "level": report.level,
        "line": masked(report.line),
        "exit_code": report.exit_code,
        "asked": asked,
        "last_asked": asked,
        "seconds": report.seconds,
        "embaudit_version": version("embaudit"),
    }
    findings = [
        {"answer_id": answer_id, "place": place, **asdict(finding)} for place, finding in enumerate(report.by_level())
    ]
    figures = {
        (figure.figure, figure.item): {"answer_id": answer_id, **asdict(figure)}
        for figure in report.answer_figures()
        if isfinite(figure.value)
    }
    cases = [{"answer_id": answer_id, "place": place, **case} for place, case in enumerate(report.case_rows())]
    return {
        AnswerRow: [answer],
        AnswerFindingRow: findings,
        AnswerFigureRow: list(figures.values()),
        WhyCaseRow: cases,
    }


def _named(question: Question) -> Iterator[tuple[str, Option, Any]]:
    """Stores, functions and files of a question that are given."""
    for name, field in type(question).model_fields.items():
        written = next((one for one in field.metadata if isinstance(one, Option)), PLAIN)
        value = getattr(question, name)
        if value is not None and (written.holds or written.is_file):
            yield name, written, value


def subjects_of(question: Question) -> tuple[str, str]:
    """What a question was asked of, and the function that it was compared with or asked through."""
    given = {name: value for name, _, value in _named(question)}
    names = [_shown(given[name]) for name in type(question).arguments() if name in given]
    names = list(dict.fromkeys(names))
    return names[0], names[1] if len(names) > 1 else ""


def _shown(value: Any) -> str:
    return masked(without_credentials(name_of(value)))


def _as_json(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _as_json(each) for name, each in value.items()}
    if isinstance(value, str | Path):
        return masked(without_credentials(str(value)))
    if isinstance(value, list | tuple):
        return [_as_json(each) for each in value]
    return value if isinstance(value, bool | int | float) or value is None else _shown(value)


def _content(written: Option, value: Any) -> Any:
    """What stands for the content of something that is named; None if it may be another every time."""
    if written.holds == "store":
        place = StorePlace(str(value))
        return _signature(place.path) if place.is_path and place.path.exists() else None
    if written.holds == "function":
        return _identity(value) if is_checkpoint(value) else None
    # A source on the hub may have another commit by now.
    return _digest(Path(value)) if Path(value).exists() else None


def _signature(path: Path) -> list[list[Any]]:
    """Of a database's file, with what its last writers left beside it."""
    beside = path.parent.glob(f"{path.name}-*")
    files = sorted(one for one in path.rglob("*") if one.is_file()) if path.is_dir() else [path, *sorted(beside)]
    return [[str(one.relative_to(path.parent)), one.stat().st_size, one.stat().st_mtime_ns] for one in files]


def _identity(reference: Any) -> str | None:
    """Of the files as they are; how they are read is part of the question."""
    from embaudit.checkpoint import LoadOptions, resolve
    from embaudit.checkpoint.load import describe

    options = LoadOptions(allow_pickle=True, trust_remote_code=True)
    try:
        _, identity = describe(resolve(str(reference), allow_pickle=True, trust_remote_code=True), options)
    except EmbauditError:
        # What is wrong with it is said where it is opened.
        return None
    return identity.checkpoint_id


def _digest(path: Path) -> list[str]:
    files = sorted(one for one in path.rglob("*") if one.is_file()) if path.is_dir() else [path]
    return [hashlib.sha256(one.read_bytes()).hexdigest() for one in files]
