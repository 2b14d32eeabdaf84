"""The key of every step for made-up arguments is pinned, because a key that changes computes everybody's audits again.

It holds the function's name, version, and arguments by name, and no module: a step may move. After a change that is
meant to compute anew (a version, an argument), write the file again:

    .venv/bin/python tests/steps/test_step_keys.py
"""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel

from embaudit.steps.step import Step

PINNED = Path(__file__).with_name("keys.json")
PACKAGES = ("embaudit.measures", "embaudit.steps", "embaudit_tasks")
PLAIN: dict[Any, Any] = {int: 3, float: 0.5, bool: True, str: "a/b/c", Any: 3, NoneType: None}


def steps() -> Iterator[Step[...]]:
    for package in map(importlib.import_module, PACKAGES):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            module = importlib.import_module(found.name)
            for value in vars(module).values():
                if isinstance(value, Step) and value.function.__module__ == module.__name__:
                    yield value


def made(kind: Any) -> Any:
    """A value of a type: every field of a model is filled, so that no default is part of what is pinned."""
    origin, arguments = get_origin(kind), get_args(kind)
    if inspect.isclass(kind) and issubclass(kind, BaseModel):
        return kind.model_construct(**{name: made(field.annotation) for name, field in kind.model_fields.items()})
    if origin is Literal:
        return arguments[0]
    if origin in (Union, UnionType):
        return made(arguments[0])
    if kind in PLAIN:
        return PLAIN[kind]
    if origin is tuple:
        return tuple(made(one) for one in arguments if one is not ...)
    if issubclass(origin, dict):
        return {made(arguments[0]): made(arguments[1])}
    return [made(arguments[0])]


def keys() -> dict[str, str]:
    found = {}
    for step in steps():
        hints = get_type_hints(step.function)
        name = step.function.__name__
        assert name not in found, f"two steps are called {name}: their files would share a folder's keys"
        parameters = list(inspect.signature(step.function).parameters)[1:]
        found[name] = f"{step.folder}/{step.key(**{one: made(hints[one]) for one in parameters})}"
    return dict(sorted(found.items()))


def test_keys_are_as_they_were() -> None:
    assert keys() == json.loads(PINNED.read_text())


if __name__ == "__main__":
    PINNED.write_text(json.dumps(keys(), indent=2) + "\n")
