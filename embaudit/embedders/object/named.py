"""Imports what ``python:MODULE:NAME`` names, and makes the object of a class or a factory.

A user's own code runs here because they name it (docs/security.md).
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

from embaudit.embedders.object.interfaces import parameters
from embaudit.words.errors import EmbauditError, UsageError, did_you_mean, one_line

PREFIX = "python:"
EXAMPLE = "It is python:MODULE:NAME, as in: from MODULE import NAME."
# What a stranger's code may raise; Ctrl-C is the user's, and passes.
RAISED = (Exception, SystemExit, asyncio.CancelledError)
# A class gives an object, a factory perhaps a class.
MADE_AT_MOST = 3


MEND = "It fails without embaudit, too: mend it there, and run the same command again."


class ObjectError(EmbauditError):
    """A Python object that cannot be had, or gives no vectors."""


def is_named_object(name: str) -> bool:
    """Whether a name is that of a Python object rather than of a checkpoint."""
    return name.startswith(PREFIX)


@contextmanager
def beside_results() -> Iterator[None]:
    """What a stranger's code prints goes to stderr: stdout is for results."""
    with redirect_stdout(sys.stderr):
        yield


def import_object(name: str) -> Any:
    """What ``python:MODULE:NAME`` names.

    Raises:
        UsageError: if there is no such module, or no such name in it.
        ObjectError: if the module cannot be imported.
    """
    module_name, _, attribute = name.removeprefix(PREFIX).partition(":")
    if not all(part.isidentifier() for part in (*module_name.split("."), *attribute.split("."))):
        raise UsageError(f"{name} names no Python object.", next_step=EXAMPLE)
    found = _module(module_name)
    for part in attribute.split("."):
        try:
            with beside_results():
                found = getattr(found, part)
        except AttributeError as error:
            raise UsageError(
                f"{getattr(found, '__name__', type(found).__name__)} has no {part}.",
                next_step=did_you_mean(part, [one for one in dir(found) if not one.startswith("_")]) + EXAMPLE,
            ) from error
        except RAISED as error:
            raise ObjectError(f"{name} cannot be had: {raised(error)}", next_step=MEND) from error
    return found


def _module(name: str) -> Any:
    here = str(Path.cwd())
    # First, so that it is found as Python itself finds it; last afterwards, for what it imports later: a file here must
    # not take the place of a package that embaudit imports.
    sys.path.insert(0, here)
    try:
        with beside_results():
            return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            near = did_you_mean(name, [path.stem for path in Path(here).glob("*.py")])
            raise UsageError(
                f"There is no Python module {name}: neither in {here} nor among the installed packages.",
                next_step=near + EXAMPLE,
            ) from error
        raise ObjectError(
            f"The module {name} cannot be imported: it needs {error.name}, which is not installed.",
            next_step="Install it beside embaudit.",
        ) from error
    except SyntaxError as error:
        raise ObjectError(
            f"The module {name} cannot be imported: {error.msg} ({Path(error.filename or name).name}, line "
            f"{error.lineno}).",
            next_step=MEND,
        ) from error
    except RAISED as error:
        raise ObjectError(f"The module {name} cannot be imported: {raised(error)}", next_step=MEND) from error
    finally:
        sys.path.remove(here)
        if here not in sys.path:
            sys.path.append(here)


def instance_of(given: Any, name: str) -> tuple[Any, str]:
    """The object itself, and how it was made of what was given: by calling a class or a factory without arguments.

    Raises:
        UsageError: if a class needs arguments.
        ObjectError: if it cannot be made.
    """
    made = ""
    for _ in range(MADE_AT_MOST):
        if not _makes_one(given):
            break
        needed = [one.name for one in parameters(given) or () if _is_needed(one)]
        if needed:
            raise UsageError(
                f"{name} is a class that needs {', '.join(needed)}.",
                next_step="Name an object of it, or a function without arguments that makes one.",
            )
        try:
            with beside_results():
                given = given()
        except RAISED as error:
            raise ObjectError(f"{name}{made}() gives no object: {raised(error)}", next_step=MEND) from error
        made += "()"
    return given, made


def _makes_one(given: Any) -> bool:
    """Whether this is a class, or a function that takes nothing."""
    if inspect.isclass(given):
        return True
    return inspect.isroutine(given) and parameters(given) == []


def _is_needed(one: inspect.Parameter) -> bool:
    return one.default is one.empty and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)


def raised(error: BaseException) -> str:
    """What was raised, and where in a stranger's code, as a sentence."""
    last = traceback.extract_tb(error.__traceback__)[-1:]
    is_theirs = last and Path(last[0].filename).parent != Path(__file__).parent
    where = f" ({Path(last[0].filename).name}, line {last[0].lineno})" if is_theirs else ""
    said = one_line(error)
    kind = type(error).__name__
    return f"{kind}{where}." if said == f"{kind}." else f"{kind}: {said.rstrip('.')}{where}."
