"""Reads and writes passports. A file that this version cannot read, or that somebody changed, is named as such."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from embaudit.questions.passport.passport import CHECKSUM, FORMAT, VERSION, PassedCheckpoint, Passport, checksum_of
from embaudit.system.files import replace_atomically
from embaudit.system.small_files import parsed, small_bytes
from embaudit.words.errors import StorageError, UsageError, one_line

AGAIN = "Make it again: embaudit passport CHECKPOINT --out FILE"


def read_passport(path: Path) -> Passport:
    """A passport's content.

    Raises:
        UsageError: if the file is none, is of a newer version, or was changed after it was made.
    """
    try:
        content = parsed(small_bytes(path))
    except OSError as error:
        raise UsageError(f"Cannot read the passport {path}: {one_line(error)}", next_step="Check the path.") from error
    except ValueError as error:
        raise UsageError(f"{path} is no passport: it is not JSON ({one_line(error)})", next_step=AGAIN) from error
    return _passport(content, path)


def _passport(content: Any, path: Path) -> Passport:
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise UsageError(f'{path} is no passport: its "format" is not "{FORMAT}".', next_step=AGAIN)
    version = content.get("version")
    if not isinstance(version, int) or version < 1:
        raise UsageError(f'{path} is damaged: its "version" is {version!r}.', next_step=AGAIN)
    if version > VERSION:
        made_by = content.get("made_with")
        by = f" (embaudit {made_by['embaudit']})" if isinstance(made_by, dict) and "embaudit" in made_by else ""
        raise UsageError(
            f"{path} is a passport of version {version}, written by a newer embaudit{by}; this one reads version "
            f"{VERSION}.",
            next_step="Upgrade embaudit: pip install --upgrade embaudit",
        )
    if content.get(CHECKSUM) != checksum_of(content):
        what = "has no checksum" if CHECKSUM not in content else "was changed after it was made: its checksum differs"
        raise UsageError(f"{path} {what}.", kept="Nothing was compared.", next_step=AGAIN)
    try:
        return Passport.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        said = first["msg"].removeprefix("Value error, ")
        raise UsageError(f"{path} is damaged: {where + ': ' if where else ''}{said}.", next_step=AGAIN) from error


def write_passport(passport: Passport, path: Path) -> None:
    """Write a passport to a file that is complete or absent; one of the same checkpoint is replaced.

    Raises:
        UsageError: if the file is something else.
        StorageError: if it cannot be written.
    """
    refuse_other_file(path, passport.checkpoint)
    try:
        with replace_atomically(path) as partial:
            partial.write_text(json.dumps(passport.as_json(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    except OSError as error:
        raise StorageError(
            f"Cannot write the passport {path}: {one_line(error)}",
            kept="Nothing was changed.",
            next_step="Free some space, or choose another file: --out FILE",
        ) from error


def refuse_other_file(path: Path, own: PassedCheckpoint | None = None) -> None:
    """Refuse to replace what is no passport, or that of another checkpoint: an index may have been built by it.

    Args:
        own: what the passport is to be of; None if that is not known yet.

    Raises:
        UsageError: if that is what the file is.
    """
    if not path.exists():
        return
    try:
        existing = read_passport(path)
    except UsageError as error:
        raise UsageError(
            f"{path} exists, and would be lost: {error.happened}",
            kept="It is unchanged.",
            next_step="Choose another file: --out FILE, or delete this one.",
        ) from error
    # A function without an id is known by its name alone.
    if own is not None and (own.id, own.id or own.source) != (
        existing.checkpoint.id,
        existing.checkpoint.id or existing.checkpoint.source,
    ):
        raise UsageError(
            f"{path} is the passport of another checkpoint, or of one that is read otherwise: "
            f"{', '.join(filter(None, (existing.checkpoint.id, existing.checkpoint.source)))}.",
            kept="It is unchanged.",
            next_step="Choose another file: --out FILE, or delete this one.",
        )
