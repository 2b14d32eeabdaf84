"""Who built an index, as its vectors alone tell: in words, by the fingerprints that are known.

The user's own lie in ``HOME/fingerprints``, a file a model, and are known to ``embaudit vectors`` beside those that
come with embaudit (``known/README.md`` says how these were made). One of the same name is taken before these. What a
colleague sent is read, too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Literal, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError, model_validator

from embaudit.declared.rule import Finding, Rule, percent
from embaudit.questions.question import MODEL_NAME
from embaudit.questions.vectors.alone import VectorProfile, different_places
from embaudit.questions.vectors.fingerprint import (
    HARDLY_ANY,
    NEARLY_ALL,
    SPREAD_ROWS,
    Fingerprint,
    HeldOutParts,
    Likeness,
    Measure,
    Origin,
    origin_of,
)
from embaudit.statistics import score_share
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


# Rows of the sample that are looked at: more tell no more.
MOST_ROWS = 2_000
BUILDER = Rule(
    "builder",
    "what a model's vectors have in common: dimensions that stay zero, mean direction, spread by dimension",
    look_if=f"{percent(HARDLY_ANY)} to {percent(NEARLY_ALL)} of the rows are a known model's, and the others are not",
    reason="`ok`: whose nearly all rows are, or that they are no known model's; `not measured` if that cannot be told",
)


def builder_findings(alone: VectorProfile, *, is_named_only: bool = False) -> Iterator[Finding]:
    """Whose vectors they are; nothing if no known model gives so many numbers.

    Args:
        is_named_only: nothing, too, if nobody is named.
    """
    places = different_places(alone.profile)[:MOST_ROWS]
    if not len(places):
        return
    known, unread = known_fingerprints()
    origin = origin_of(alone.profile.sample.vectors[places], known)
    if origin is not None and (origin.best is not None or not is_named_only):
        yield _told(origin, alone.profile.sample.numbers[places])
    for error in unread:
        yield BUILDER.finding("not measured", error.happened, "A store of that model is not named.", error.next_step)


def _told(origin: Origin, numbers: np.ndarray) -> Finding:
    """In words.

    Args:
        numbers: (n,) of the rows that were looked at, from 0.
    """
    rows = len(numbers)
    best, dimension = origin.best, origin.tried[0].fingerprint.dimension
    models = ", ".join(one.fingerprint.model for one in origin.tried)
    if best is None and origin.told == "nobody known":
        return BUILDER.finding(
            "ok",
            f"The vectors are those of no model of {dimension:,} numbers that can be told by them: {models}.",
            note="Vectors that were quantised coarsely, centred or rotated behind the model are not known again.",
        )
    if best is None:
        return BUILDER.finding(
            "not measured",
            f"Cannot tell who built the index from its vectors alone: {_why_not(origin, rows)}.",
            "It may be a model that is known here, or another.",
            "Name the function that may have built it: embaudit vectors STORE FUNCTION",
        )
    model, share = best.fingerprint.model, best.share or 0.0
    what = f"{_or_who_else(origin)}, {_by_what(best)}"
    if origin.told == "named":
        whose = "The vectors" if share == 1 else f"{share:.0%} of {rows:,} different vectors"
        return BUILDER.finding(
            "ok", f"{whose} are those of {model}{what}.", value=best.value, note=_how_sure(best.fingerprint)
        )
    first = "" if best.is_own is None else f", row {int(numbers[~best.is_own].min()) + 1:,} first"
    return BUILDER.finding(
        "look",
        f"{share:.0%} of {rows:,} different vectors are those of {model}{what}. The others are not{first}.",
        f"Two models share the index, or rows were changed behind the model. {_how_sure(best.fingerprint)}",
        f"Encode the other rows again by {model}, or keep them in an index of their own.",
        value=share,
    )


def _or_who_else(origin: Origin) -> str:
    """Who else may have built it: models whose fingerprints fit, too, and those that a fingerprint names."""
    named = [one.fingerprint for one in (origin.best, *origin.also) if one is not None]
    models = dict.fromkeys([*(one.model for one in named[1:]), *(one.not_told_from for one in named)])
    others = [one for one in models if one and one != named[0].model]
    return f" (or of {', or of '.join(others)})" if others else ""


def _by_what(best: Likeness) -> str:
    one = best.fingerprint
    is_measured = one.held_out is not None and one.held_out.others > 0
    whose = f"other models of {one.dimension:,} numbers" if is_measured else "unrelated vectors"
    others = f"{whose} at most {_two(one.highest_other)}"
    if one.measure == "still":
        return f"by the dimensions that this model leaves at zero: {', '.join(map(str, one.still))} (from 0)"
    if one.measure == "direction":
        return f"by the mean direction of that model ({_two(best.value)} at the median; {others})"
    return f"by how much each dimension varies in all rows together (correlation {_two(best.value)}; {others})"


def _two(value: float) -> str:
    """.80, −.02."""
    return f"{value:.2f}".replace("0.", ".", 1).replace("-", "−")


def _how_sure(fingerprint: Fingerprint) -> str:
    counted = fingerprint.held_out
    if not fingerprint.is_of_public_stores:
        return f"{_what_it_rests_on(fingerprint)} A model that was trained from it or from its base may pass for it."
    if counted is None:
        return ""
    low, high = score_share(counted.named, counted.own)[0], score_share(counted.wrongly, counted.others)[1]
    return (
        f"Of public stores held out, {counted.named} of {counted.own} of this model were named so (at least {low:.0%}) "
        f"and {counted.wrongly} of {counted.others} of other models of as many numbers (at most {high:.0%})."
    )


def _what_it_rests_on(fingerprint: Fingerprint) -> str:
    """In how many of those that were left out a user's fingerprint named its model, and others."""
    made, counted = f"The fingerprint is yours, of {', '.join(fingerprint.sources)}", fingerprint.held_out
    if fingerprint.parts == "halves of a store" or counted is None or not counted.own:
        told = "too few stores to leave one out and count how often it is named"
    else:
        left_out = f"{counted.own} {fingerprint.parts} left out"
        told = f"of {left_out}, {counted.named} {'was' if counted.named == 1 else 'were'} named"
    others = f", and {counted.wrongly} of {counted.others} of other models" if counted and counted.others else ""
    return f"{made}: {told}{others}."


def _why_not(origin: Origin, rows: int) -> str:
    unsaid = [one for one in origin.tried if one.share is None]
    between = [one for one in origin.tried if one.between >= HARDLY_ANY]
    like = [one for one in origin.tried if one.share]
    if like[1:]:
        named = " and ".join(one.fingerprint.model for one in like)
        return f"rows are like those of {named}, and too few or of both"
    if between:
        one = between[0]
        return (
            f"{one.between:.0%} of the rows are somewhat like {one.fingerprint.model} (cosines between "
            f"{_two(one.fingerprint.highest_other)} and {_two(one.fingerprint.limit)} to its mean direction)"
        )
    if not unsaid:
        return f"rows are like those of {like[0].fingerprint.model}, and too few"
    one = unsaid[0]
    if one.fingerprint.measure == "still":
        return f"too many of its numbers are zero to see which are always zero, as with {one.fingerprint.model}"
    if rows < SPREAD_ROWS:
        fewest = f"{one.fingerprint.model} is told from {SPREAD_ROWS} different rows on"
        return f"{fewest}, and there {'is' if rows == 1 else 'are'} {rows}"
    return f"it is somewhat like {one.fingerprint.model} (correlation {_two(one.value)}, which is neither)"
