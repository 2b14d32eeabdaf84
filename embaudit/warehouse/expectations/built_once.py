"""Speeds up Great Expectations: builds each expectation's configuration once per validation.

``Expectation.configuration`` is a property that serializes all fields. Version 1.24 reads it about a hundred times to
validate one expectation, and makes an expectation of the configuration again for each of its metrics. It also converts
to JSON types what has them, to name each of the metrics that it builds. Both take two thirds of the total time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from great_expectations.core import id_dict
from great_expectations.expectations import Expectation
from great_expectations.expectations.expectation_configuration import ExpectationConfiguration

# Neither is hashable, so the key is the identity; holding the object keeps the identity from being reused.
_Built = dict[int, tuple[Any, Any]]
_built: ContextVar[_Built | None] = ContextVar("built", default=None)
_read = vars(Expectation).get("configuration")
_make = vars(ExpectationConfiguration).get("to_domain_obj")
_convert = vars(id_dict).get("convert_to_json_serializable")
_PLAIN = (str, int, bool, type(None))


@contextmanager
def configurations_built_once() -> Iterator[None]:
    """Cache configurations and their expectations; fields of neither must change within the block."""
    token = _built.set({})
    try:
        yield
    finally:
        _built.reset(token)


def _once(build: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def found_or_built(of: Any) -> Any:
        built = _built.get()
        if built is None:
            return build(of)
        if id(of) not in built:
            built[id(of)] = of, build(of)
        return built[id(of)][1]

    return found_or_built


def _converted(data: dict[str, Any]) -> Any:
    """Great Expectations tries twenty types on every value, on None all of them."""
    return data if all(type(value) in _PLAIN for value in data.values()) else _convert(data=data)


# A later version may not have one of them; then nothing is cached.
if isinstance(_read, property) and _read.fget is not None:
    Expectation.configuration = property(_once(_read.fget))
if callable(_make):
    ExpectationConfiguration.to_domain_obj = _once(_make)
if callable(_convert):
    id_dict.convert_to_json_serializable = _converted
