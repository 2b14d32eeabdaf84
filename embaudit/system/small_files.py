"""Reads what is small by its nature (settings, cards, passports, lists), but may be a stranger's.

Neither its size nor its nesting is trusted.

Reads the user's TOML files (profiles, policies, watch lists) into typed objects.

An error is one paragraph: the file, the key and its place (``limit 2, max``), what was expected and found, and the name
that was probably meant.
"""

from __future__ import annotations

import errno
import json
import tomllib
from collections.abc import Callable, Mapping
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from embaudit.words.errors import UsageError, hint
from embaudit.words.sentences import within

# The largest that is in use is a tokenizer's vocabulary, of some 35 MB.
MOST_BYTES = 64 << 20
# Of a model card, fields come first.
CARD_BYTES = 1 << 20


def small_bytes(path: Path) -> bytes:
    """A file's content.

    Raises:
        OSError: if it cannot be read, or is larger than such a file can be.
    """
    with path.open("rb") as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise OSError(errno.EFBIG, f"it has more than {MOST_BYTES >> 20} MiB, which no such file needs")
    return content


def card_text(path: Path) -> str:
    """A model card, as far as it is read.

    Raises:
        OSError: if it cannot be read.
    """
    with path.open("rb") as file:
        return file.read(CARD_BYTES).decode("utf-8", errors="replace")


def parsed(content: str | bytes, integer: Callable[[str], float] | None = None) -> Any:
    """The content of JSON.

    Args:
        integer: makes a number of an integer's digits.

    Raises:
        ValueError: if it is none, or its lists are nested too deep.
    """
    try:
        return json.loads(content, parse_int=integer)
    except RecursionError as error:
        raise TooDeep("its lists are nested too deep") from error


class TooDeep(ValueError):
    """Lists in lists, deeper than can be read."""


MAX_COMPLAINTS = 3
Model = TypeVar("Model", bound=BaseModel)


def read_toml(
    path: Path | Traversable,
    model: type[Model],
    *,
    what: str,
    next_step: str = "",
    defaults: Mapping[str, Any] | None = None,
) -> Model:
    """Read a TOML file into a model.

    Args:
        what: what the file is, as in "the policy".
        next_step: end of the error messages, such as where to find an example.
        defaults: values of keys that the file may leave out.

    Raises:
        UsageError: if there is no such file, it is not TOML, or its content is invalid.
    """
    try:
        content = tomllib.loads(_text(path))
    except FileNotFoundError as error:
        raise UsageError(f"There is no {what} {path}.", next_step=next_step) from error
    except OSError as error:
        raise UsageError(
            f"The {what} {path} cannot be read: {error.strerror or error}.", next_step=next_step
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"The {what} {path} is not TOML: {error}.", next_step=next_step) from error
    except RecursionError as error:
        raise UsageError(
            f"The {what} {path} is not read: its lists are nested too deep.", next_step=next_step
        ) from error
    try:
        return model.model_validate({**(defaults or {}), **content})
    except ValidationError as error:
        found = "; ".join(complaint(dict(one), model) for one in error.errors()[:MAX_COMPLAINTS])
        raise UsageError(f"The {what} {path} is invalid: {found}.", next_step=next_step) from error


def _text(path: Path | Traversable) -> str:
    """Lines end as in any text; those of this package are no files of their own in a zip."""
    if isinstance(path, Path):
        return small_bytes(path).decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    return path.read_text(encoding="utf-8")


def complaint(error: dict[str, Any], model: type[BaseModel]) -> str:
    """A pydantic error in words, with the place of the key and the name that was probably meant."""
    location: tuple[str | int, ...] = error["loc"]
    place = _place(location)
    if error["type"] == "extra_forbidden":
        # The place already ends with the key.
        return f"unknown key {place}{hint(str(location[-1]), _model_at(location[:-1], model).model_fields)}"
    if error["type"] == "missing":
        return f"{place} is missing"
    message = within(str(error["msg"]).removeprefix("Value error, "))
    # Our own validators decide how much of a value to show: it can be a secret.
    if error["type"] != "value_error" and isinstance(error["input"], str | int | float):
        message += f", not {error['input']!r}"
    return f"{place}: {message}" if place else message


def _place(location: tuple[str | int, ...]) -> str:
    """``limit 2, max`` for max of the second [[limit]]."""
    words: list[str] = []
    for part in location:
        if isinstance(part, int) and words:
            words[-1] += f" {part + 1}"
        else:
            words.append(str(part))
    return ", ".join(words)


def _model_at(location: tuple[str | int, ...], model: type[BaseModel]) -> type[BaseModel]:
    """The model of a place: ("limit", 0) -> Limit."""
    for part in location:
        if part in model.model_fields:
            model = _model_in(model.model_fields[str(part)].annotation) or model
    return model


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for one in get_args(annotation) if (found := _model_in(one))), None)
