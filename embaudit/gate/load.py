"""Reading a policy's file, with errors that say which key of which rule is wrong and what was probably meant."""

from __future__ import annotations

import tomllib
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from embaudit.errors import UsageError
from embaudit.gate.figures import nearest
from embaudit.gate.policy import Policy

DESCRIBED = "docs/gate.md has an example that explains every key."


def load_policy(path: str | Path) -> Policy:
    """Read a policy from a TOML file; without a name of its own it is called as the file is.

    Raises:
        UsageError: if there is no such file, it is no TOML, or it says something that a policy cannot.
    """
    path = Path(path).expanduser()
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise UsageError(f"There is no policy file {path}.", next_step=DESCRIBED) from error
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"The policy {path} cannot be read: {error}.", next_step="Name a TOML file.") from error
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"The policy {path} is not TOML: {error}.", next_step=DESCRIBED) from error
    try:
        return Policy.model_validate({"name": path.stem, **given})
    except ValidationError as error:
        complaints = "; ".join(_complaint(dict(one)) for one in error.errors()[:3])
        stop = "" if complaints.endswith("?") else "."
        raise UsageError(f"The policy {path} does not fit: {complaints}{stop}", next_step=DESCRIBED) from error


def _complaint(error: dict[str, Any]) -> str:
    location: tuple[str | int, ...] = error["loc"]
    where = _place(location)
    if error["type"] == "extra_forbidden":
        known = list(_model_at(location[:-1]).model_fields)
        # The place already ends in the key itself.
        return f"there is no key {where}{nearest(str(location[-1]), known)}"
    if error["type"] == "missing":
        return f"{where} is missing"
    message = str(error["msg"]).removeprefix("Value error, ")
    return f"{where}: {message[0].lower()}{message[1:]}" if where else message


def _place(location: tuple[str | int, ...]) -> str:
    """``limit 2, max`` for the second [[limit]]'s max."""
    words: list[str] = []
    for part in location:
        if isinstance(part, int) and words:
            words[-1] += f" {part + 1}"
        else:
            words.append(str(part))
    return ", ".join(words)


def _model_at(location: tuple[str | int, ...]) -> type[BaseModel]:
    """The model that a place in the policy is of: ("limit", 0) -> Limit."""
    model: type[BaseModel] = Policy
    for part in location:
        if isinstance(part, str):
            model = _model_in(model.model_fields[part].annotation) or model
    return model


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if get_origin(annotation) in (list, Union, UnionType):
        return next((found for one in get_args(annotation) if (found := _model_in(one))), None)
    return None
