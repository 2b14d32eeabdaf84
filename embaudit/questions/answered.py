"""Makes rows of an answer, and the key under which it stands: what was asked, and what it was asked of, by content."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from math import isfinite, log2
from pathlib import Path
from typing import Any

from embaudit.declared.option import Option, written_as
from embaudit.declared.table import Row
from embaudit.embedders.opened import is_checkpoint, name_of
from embaudit.questions.question import Question
from embaudit.questions.report import AnswerFigureRow, AnswerFindingRow, AnswerRow, Report, WhyCaseRow
from embaudit.stores.kinds import OWN
from embaudit.stores.place import StorePlace
from embaudit.system.installed import code_digest, content_key
from embaudit.words.errors import EmbauditError
from embaudit.words.masking import MASK, SECRET_NAME, keep_credentials, masked, shown_place

# Fields that change how an answer is found, and not what it is.
NOT_ASKED = {"device", "requests_per_minute", "fresh"}
Rows = Mapping[type[Row], Sequence[Mapping[str, Any]]]


def question_key(question: Question) -> str:
    """A key of the question as it was asked: the same one, night after night, has the same."""
    # Of what was given, and not of how it is shown: what is masked depends on what a process knows.
    return content_key(asks=question.asks, asked=_given(question, _plain))


def parameters_of(question: Question) -> dict[str, Any]:
    """What was given, by name, as JSON has it; objects by their names, without secrets."""
    return _given(question, _shown)


def answer_key(question: Question) -> str | None:
    """A key of the question and of the content of all that it names; None if something of that is live.

    Files of a store, and of a checkpoint's folder, count by name, size and time of their last change, all other files
    by content. What also writes a file has no key either: it is asked for that.
    """
    if question.is_live:
        return None
    parts: dict[str, Any] = {}
    for name, written, value in _named(question):
        for each in value if isinstance(value, list | tuple) else [value]:
            part = _content(written, each)
            if part is None:
                return None
            parts.setdefault(name, []).append(part)
    parts |= {folder.name: _digest(folder) for folder in question.also_read() if folder.is_dir()}
    code = version("embaudit"), code_digest("embaudit")
    return content_key(question=question_key(question), content=parts, code=code)


def rows_of(question: Question, report: Report, key: str | None, asked: datetime) -> Rows:
    """An answer as rows.

    Args:
        key: ``answer_key`` as it was before the answer was found.
    """
    whole = question_key(question)
    answer_id = _id_of(whole, key, asked)
    subject, function = subjects_of(question)
    answer = {
        "answer_id": answer_id,
        "question_key": whole,
        "content_key": key,
        "computed_id": answer_id,
        "problems": _problems_of(report),
        "asks": question.asks,
        "subject": subject,
        "function": function,
        "question": json.dumps(parameters_of(question), ensure_ascii=False, sort_keys=True, default=str),
        "verdict": report.verdict,
        "level": report.level,
        "line": masked(report.line),
        "exit_code": report.exit_code,
        "asked": asked,
        "seconds": report.seconds,
        "embaudit_version": version("embaudit"),
    }
    rows: dict[type[Row], Any] = {AnswerFindingRow: [asdict(finding) for finding in report.by_level()], **report.rows()}
    figures = [{"answer_id": answer_id, **asdict(figure)} for figure in report.kept_figures()]
    return {
        AnswerRow: [_clean(answer)],
        AnswerFigureRow: list(map(_clean, figures)),
        **{
            table: [_clean({"answer_id": answer_id, "place": place, **row}) for place, row in enumerate(of_table)]
            for table, of_table in rows.items()
        },
    }


def again(row: Mapping[str, Any], asked: datetime) -> dict[str, Any]:
    """The row of an answer that holds: asked again, and not computed."""
    answer_id = _id_of(row["question_key"], row["content_key"], asked)
    return {**row, "answer_id": answer_id, "asked": asked, "seconds": 0.0}


def subjects_of(question: Question) -> tuple[str, str]:
    """What a question was asked of, and the function that it was compared with or asked through; without secrets."""
    given = {name: value for name, _, value in _named(question)}
    names = [str(_shown(given[name], True)) for name in type(question).about() if name in given]
    return names[0], names[1] if len(names) > 1 else ""


def _id_of(question: str, key: str | None, asked: datetime) -> str:
    return content_key(question=question, content=key, asked=asked.astimezone(UTC).isoformat())


def _problems_of(report: Report) -> str:
    """What is wrong, so that what somebody accepted does not stand for worse: shares by tenths, counts by doubles."""
    if report.level != "problem":
        return ""
    wrong: list[list[str]] = [
        [finding.name, _about(finding.value)] for finding in report.findings if finding.level == "problem"
    ]
    cases = report.rows().get(WhyCaseRow, ())
    wrong += [[str(case["query"]), str(case["expected"])] for case in cases if case["lost"] != "found" or case["stage"]]
    wrong += [["cause", said] for said in report.causes()]
    return " ".join(sorted({content_key(wrong=one)[:8] for one in wrong}))


def _about(value: float | None) -> str:
    if value is None or not isfinite(value):
        return ""
    return f"{value:.1f}" if abs(value) <= 1 else f"2^{round(log2(abs(value)))}"


def _clean(row: Mapping[str, Any]) -> dict[str, Any]:
    """Texts as a table can hold them: without halves of characters."""
    return {
        name: value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
        for name, value in row.items()
    }


def _named(question: Question) -> Iterator[tuple[str, Option, Any]]:
    """Stores, functions and files of a question that are given."""
    for name in type(question).model_fields:
        written, value = _written(question, name), getattr(question, name)
        if value is not None and (written.holds or written.is_file):
            yield name, written, value


def _written(question: Question, name: str) -> Option:
    return written_as(type(question).model_fields[name])


def _given(question: Question, said: Callable[[Any, bool], Any]) -> dict[str, Any]:
    """What was given, by name, and is not the default."""
    fields = type(question).model_fields
    values = {name: getattr(question, name) for name in sorted(question.model_fields_set - NOT_ASKED)}
    return {
        name: said(value, bool(_written(question, name).holds or _written(question, name).is_file))
        for name, value in values.items()
        if value is not fields[name].default and value != fields[name].default
    }


def _plain(value: Any, is_place: bool) -> Any:
    """A value in JSON's types; a path as it is from anywhere."""
    if isinstance(value, Mapping):
        return {str(name): _plain(each, is_place) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each, is_place) for each in value]
    if isinstance(value, str | Path):
        return _absolute(str(value)) if is_place else str(value)
    return value if isinstance(value, bool | int | float) or value is None else name_of(value)


def _shown(value: Any, is_place: bool) -> Any:
    """The same without secrets."""
    if isinstance(value, Mapping):
        return {
            str(name): MASK if SECRET_NAME.search(str(name)) else _shown(each, is_place) for name, each in value.items()
        }
    if isinstance(value, list | tuple):
        return [_shown(each, is_place) for each in value]
    plain = _plain(value, is_place)
    if not isinstance(plain, str):
        return plain
    keep_credentials(plain)
    return shown_place(plain) if is_place else masked(plain)


def _absolute(named: str) -> str:
    """The path of something that is there, as a watch list has it; any other name as it is."""
    place = StorePlace(named)
    return str(place.path.absolute()) if place.is_path and place.path.exists() else named


def _content(written: Option, value: Any) -> Any:
    """What stands for the content of something that is named; None if it may be another every time."""
    if written.holds == "store":
        kind, _, rest = str(value).partition(":")
        place = StorePlace(rest if kind in OWN else str(value))
        return _signature(place.path) if place.is_path and place.path.exists() else None
    if written.holds == "function":
        return _identity(value) if is_checkpoint(value) else None
    # A source on the hub may have another commit by now.
    return _digest(Path(value)) if isinstance(value, str | Path) and Path(value).exists() else None


def _files(path: Path) -> list[Path]:
    """All files below a folder, also behind links; a file by itself, with what its last writers left beside it."""
    if not path.is_dir():
        return [path, *sorted(path.parent.glob(f"{path.name}-*"))]
    return sorted(Path(folder) / name for folder, _, names in os.walk(path, followlinks=True) for name in names)


def _signature(path: Path) -> list[list[Any]]:
    return [[str(one), one.stat().st_size, one.stat().st_mtime_ns] for one in _files(path) if one.exists()]


def _identity(reference: Any) -> Any:
    """Of all files of a checkpoint, those beside the weights too: how they are read is part of the question."""
    from embaudit.checkpoint import resolve

    try:
        resolved = resolve(str(reference), allow_pickle=True, trust_remote_code=True)
    except EmbauditError:
        # What is wrong with it is said where it is opened.
        return None
    return _signature(resolved.folder.absolute())


def _digest(path: Path) -> list[list[str]]:
    """By name and content: names are all that some questions read."""
    digests = []
    for one in _files(path) if path.is_dir() else [path]:
        with one.open("rb") as file:
            digests.append([str(one.relative_to(path)), hashlib.file_digest(file, "sha256").hexdigest()])
    return digests
