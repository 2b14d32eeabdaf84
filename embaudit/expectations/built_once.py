"""Great Expectations, with each expectation's configuration built once in a validation.

``Expectation.configuration`` is a property that serializes all fields. Version 1.24 reads it about a hundred times to
validate one expectation, which takes half of the whole time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from great_expectations.expectations import Expectation

if TYPE_CHECKING:
    from great_expectations.expectations.expectation_configuration import ExpectationConfiguration

# An expectation has no hash, so that its identity is the key; who holds it keeps that identity from being given again.
_Built = dict[int, tuple[Expectation, "ExpectationConfiguration"]]
_built: ContextVar[_Built | None] = ContextVar("built", default=None)
_read = vars(Expectation).get("configuration")


@contextmanager
def configurations_built_once() -> Iterator[None]:
    """Within, an expectation's fields must not change."""
    token = _built.set({})
    try:
        yield
    finally:
        _built.reset(token)


def _configuration(expectation: Expectation) -> ExpectationConfiguration:
    built = _built.get()
    if built is None:
        return _read.fget(expectation)
    if id(expectation) not in built:
        built[id(expectation)] = expectation, _read.fget(expectation)
    return built[id(expectation)][1]


# A later version may do without the property; it is only slower where it does not.
if isinstance(_read, property):
    Expectation.configuration = property(_configuration)
