"""Reads and writes fingerprints: those that come with embaudit, the user's own, and what a colleague sent.

The user's own lie in ``HOME/fingerprints``, a file a model, and are known to ``embaudit vectors`` beside those that
come with embaudit (``known/README.md`` says how these were made). One of the same name is taken before these.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError, model_validator

from embaudit.questions.parts import MODEL_NAME
from embaudit.questions.vectors.fingerprint import Fingerprint, HeldOutParts, Measure
from embaudit.system.files import replace_atomically
from embaudit.system.settings import Settings
from embaudit.system.small_files import parsed, small_bytes
from embaudit.words.errors import EmbauditError, StorageError, UsageError, one_line

FORMAT, VERSION = "embaudit fingerprints", 1
FOLDER = "fingerprints"
AGAIN = "Make it again: embaudit fingerprint SOURCE --name NAME"
Count = Annotated[int, Field(ge=0)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _HeldOut(_Strict):
    named: Count
    own: Count
    wrongly: Count
    others: Count


class _Written(_Strict):
    """A fingerprint as a file has it."""

    model: Annotated[str, Field(pattern=MODEL_NAME)]
    measure: Measure
    direction: Annotated[list[FiniteFloat], Field(min_length=2, max_length=1 << 16)]
    spread: list[FiniteFloat]
    still: list[Count]
    limit: FiniteFloat
    highest_other: FiniteFloat
    owners: Count
    stores: Count
    rows: Count
    not_told_from: Annotated[str, Field(max_length=300)] = ""
    held_out: _HeldOut | None = None
    parts: HeldOutParts = "owners"
    sources: list[Annotated[str, Field(max_length=1_000)]] = []
    embaudit: Annotated[str, Field(max_length=100)] = ""

    @model_validator(mode="after")
    def _is_of_one_dimension(self) -> Self:
        if len(self.spread) != len(self.direction) or not any(self.direction):
            raise ValueError("direction and spread must have a number for each dimension, and not only zeros")
        if max(self.still, default=0) >= len(self.direction):
            raise ValueError("still names a dimension that there is not")
        return self


class _File(_Strict):
    format: Literal["embaudit fingerprints"]
    version: Literal[1]
    fingerprints: list[_Written]


def read_fingerprints(path: Path) -> tuple[Fingerprint, ...]:
    """A file's content.

    Raises:
        UsageError: if it is no such file, is of a newer version, or is damaged.
    """
    try:
        return _fingerprints(small_bytes(path), str(path))
    except OSError as error:
        raise UsageError(
            f"Cannot read the fingerprint {path}: {one_line(error)}", next_step="Check the path."
        ) from error


def _fingerprints(content: bytes, shown: str) -> tuple[Fingerprint, ...]:
    try:
        told = parsed(content)
    except ValueError as error:
        raise UsageError(f"{shown} is no fingerprint: it is not JSON ({one_line(error)})", next_step=AGAIN) from error
    if not isinstance(told, dict) or told.get("format") != FORMAT:
        raise UsageError(f'{shown} is no fingerprint: its "format" is not "{FORMAT}".', next_step=AGAIN)
    version = told.get("version")
    if isinstance(version, int) and version > VERSION:
        raise UsageError(
            f"{shown} was written by a newer embaudit: it has version {version}, and this one reads {VERSION}.",
            next_step="Upgrade embaudit: pip install --upgrade embaudit",
        )
    try:
        read = _File.model_validate(told)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        said = first["msg"].removeprefix("Value error, ")
        raise UsageError(f"{shown} is damaged: {where + ': ' if where else ''}{said}.", next_step=AGAIN) from error
    return tuple(Fingerprint.from_json(one.model_dump()) for one in read.fingerprints)


def write_fingerprints(fingerprints: Sequence[Fingerprint], path: Path) -> None:
    """Write them to a file that is complete or absent, a line each.

    Raises:
        StorageError: if it cannot be written.
    """
    lines = ",\n".join(json.dumps(one.as_json()) for one in fingerprints)
    text = f'{{"format": "{FORMAT}", "version": {VERSION}, "fingerprints": [\n{lines}\n]}}\n'
    try:
        with replace_atomically(path) as partial:
            partial.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StorageError(
            f"Cannot write the fingerprint {path}: {one_line(error)}",
            kept="Nothing was changed.",
            next_step="Free some space, or choose another file: --out FILE",
        ) from error


def refuse_other_file(path: Path, model: str) -> None:
    """Refuse to replace what is no fingerprint, or another model's.

    Raises:
        UsageError: if that is what the file is.
    """
    if not path.exists():
        return
    try:
        models = {one.model for one in read_fingerprints(path)}
        why = "" if models == {model} else f"it is the fingerprint of {', '.join(sorted(models)) or 'no model'}."
    except UsageError as error:
        why = error.happened
    if why:
        raise UsageError(
            f"{path} exists, and would be lost: {why}",
            kept="It is unchanged.",
            next_step="Choose another file: --out FILE, or delete this one.",
        )


def own_folder() -> Path:
    """Where a user's own are kept."""
    return Settings().home / FOLDER


def own_file(model: str) -> Path:
    return own_folder() / f"{model.replace('/', '--').replace(':', '--')}.json"


@cache
def shipped_fingerprints() -> tuple[Fingerprint, ...]:
    """Those that come with embaudit."""
    file = files("embaudit.questions.vectors").joinpath("known", "fingerprints.json")
    return _fingerprints(file.read_bytes(), "fingerprints.json")


def known_fingerprints() -> tuple[list[Fingerprint], list[EmbauditError]]:
    """The user's own and those that come with embaudit; and why a file of the user's cannot be read."""
    own: list[Fingerprint] = []
    unread: list[EmbauditError] = []
    for path in sorted(own_folder().glob("*.json")):
        try:
            own += read_fingerprints(path)
        except UsageError as error:
            unread.append(error)
    names = {(one.model, one.dimension) for one in own}
    return [*own, *(one for one in shipped_fingerprints() if (one.model, one.dimension) not in names)], unread
