"""Finds out what a name or an object stands for, and opens it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from embaudit.checkpoint import LoadOptions, TextKind, load_checkpoint
from embaudit.checkpoint.modules import NoTransformer
from embaudit.checkpoint.prompts import NO_PROMPTS, Prompts
from embaudit.embedders.endpoint.recognise import is_address, open_endpoint
from embaudit.embedders.function import EmbeddingFunction
from embaudit.embedders.object.carrier import MADE, ObjectFunction, object_name
from embaudit.embedders.object.interfaces import import_object, instance_of, is_named_object
from embaudit.embedders.pipeline import PipelineFunction, is_pipeline, open_pipeline
from embaudit.words.errors import UsageError

# What is done, how much of it, and of how much; and, where a whole plan is known, how many seconds are left.
ProgressCallback = Callable[..., None]
# What may be given wherever a function is asked for: a name, a folder, an embedding function, or any object that gives
# vectors (docs/functions.md).
Given: TypeAlias = Any


@dataclass(frozen=True)
class CallOptions:
    """How a function whose files nobody sees is asked.

    Attributes:
        api, model: of an endpoint; by default recognised, and the only one.
        prompts: what its callers put before texts of each role.
        dimensions: how many numbers an endpoint is asked for in a vector; None for all.
        fields: more of a request for texts of each role.
        per_minute: requests that it may get in a minute; None for as many as it answers.
        fresh: whether what an endpoint gave before is forgotten.
    """

    api: str | None = None
    model: str | None = None
    prompts: Prompts = NO_PROMPTS
    dimensions: int | None = None
    fields: Mapping[TextKind, Mapping[str, Any]] = field(default_factory=dict)
    per_minute: int | None = None
    fresh: bool = False


AS_IT_IS = CallOptions()


def calls_of(given: Sequence[Given], options: Mapping[str, Any]) -> tuple[CallOptions, ...]:
    """How each of these is asked, of what is said once for all, or once for each in their order.

    An API and a model are those of endpoints; prompts are put before the texts of whatever is no checkpoint.

    Args:
        options: by name, those of ``embaudit.embedders.call_options`` that the question has.

    Raises:
        UsageError: if more is said than there is to be told.
    """
    endpoints = [place for place, function in enumerate(given) if is_endpoint(function)]
    asked = [place for place, function in enumerate(given) if not is_checkpoint(function)]
    roles: tuple[TextKind, ...] = ("text", "query", "document")
    fields = {role: {**options["fields"], **options.get(f"{role}_fields", {})} for role in roles}
    said: list[dict[str, str]] = [{} for _ in given]
    settings = {
        **{name: (options[name], endpoints) for name in ("api", "model")},
        **{role: (options.get(f"{role}_prompt"), asked) for role in ("query", "document")},
    }
    for name, (value, places) in settings.items():
        values = [] if value is None else [value] if isinstance(value, str) else list(value)
        whose = "endpoint" if places is endpoints else "endpoint or a Python object"
        if len(values) > 1 and len(values) != len(places):
            raise UsageError(
                f"{name} is given {len(values)} times, and there are {len(places)} "
                f"{'endpoints' if places is endpoints else 'endpoints and Python objects'}.",
                next_step="Give it once for all of them, or once for each, in their order.",
            )
        if values and not places:
            raise UsageError(
                f"{name} = {values[0]!r} is of an {whose}, and there is none: {', '.join(map(name_of, given))}.",
                next_step="Leave it out.",
            )
        for place, each in zip(places, values * len(places) if len(values) == 1 else values, strict=False):
            said[place][name] = each
    of_endpoints: dict[str, Any] = {
        "dimensions": options["dimensions"],
        "fields": {role: some for role, some in fields.items() if some},
        "per_minute": options["requests_per_minute"],
        "fresh": options.get("fresh", False),
    }
    return tuple(
        CallOptions(
            told.get("api"),
            told.get("model"),
            Prompts("", told.get("query", ""), told.get("document", "")),
            **(of_endpoints if place in endpoints else {}),
        )
        for place, told in enumerate(said)
    )


def name_of(given: Given) -> str:
    """What people call it."""
    if isinstance(given, EmbeddingFunction):
        return given.name
    if isinstance(given, str | Path):
        return str(given)
    return "the model in memory" if is_pipeline(given) else object_name(given)


def is_endpoint(given: Given) -> bool:
    return isinstance(given, str) and is_address(given)


def is_checkpoint(given: Given) -> bool:
    """Whether this names a checkpoint rather than something that is asked."""
    return isinstance(given, str | Path) and not is_endpoint(given) and not is_named_object(str(given))


def open_function(given: Given, options: LoadOptions, asked: CallOptions = AS_IT_IS) -> EmbeddingFunction:
    """The function that something stands for: an endpoint's address, a Python object or its name, or a checkpoint.

    A checkpoint that is no transformer is a pipeline of sentence-transformers, where that reads it.

    Args:
        options: how a checkpoint is loaded.

    Raises:
        EmbauditError: if it cannot be opened, or is told what it does not take.
    """
    if isinstance(given, EmbeddingFunction):
        _refuse_asked(given.name, asked)
        return given
    if is_endpoint(given):
        return open_endpoint(
            given,
            asked.api,
            asked.model,
            asked.prompts,
            dimensions=asked.dimensions,
            fields=asked.fields,
            per_minute=asked.per_minute,
        )
    if not is_checkpoint(given):
        return _of_an_object(given, asked)
    name = str(given)
    _refuse_asked(name, asked)
    # It imports what loads checkpoints.
    from embaudit.embedders.checkpoint import CheckpointFunction

    try:
        return CheckpointFunction(load_checkpoint(name, options, may_stay_in_files=True), name, options)
    except NoTransformer as error:
        return open_pipeline(name, options, error)


def _of_an_object(given: Given, asked: CallOptions) -> EmbeddingFunction:
    if asked.api is not None or asked.model is not None:
        raise UsageError(
            f"{name_of(given)} is a Python object, which has no API and no models.",
            next_step="Leave out --api and --model, or give an address.",
        )
    name = name_of(given)
    found, made = instance_of(import_object(str(given)) if isinstance(given, str | Path) else given, name)
    function: EmbeddingFunction
    if is_pipeline(found):
        function = PipelineFunction(found, name, prompts=asked.prompts)
    else:
        function = ObjectFunction(found, name, prompts=asked.prompts)
    if made:
        function.interface += MADE
    return function


def _refuse_asked(name: str, asked: CallOptions) -> None:
    if asked != AS_IT_IS:
        raise UsageError(
            f"{name} is asked as it is: no API, no model and no prompts of its callers can be set for it.",
            next_step="Leave these out.",
        )


def open_kept(
    given: Given, options: LoadOptions, asked: CallOptions = AS_IT_IS, told: ProgressCallback | None = None
) -> EmbeddingFunction:
    """The same; what an endpoint gives is kept, and not asked for again."""
    function = open_function(given, options, asked)
    if function.kind != "endpoint":
        return function
    from embaudit.embedders.kept import VectorCache
    from embaudit.system.settings import Settings

    return VectorCache(function, Settings().home, fresh=asked.fresh, told=told)


def open_both(
    given: Sequence[Given], options: Sequence[LoadOptions], asked: Sequence[CallOptions] = (AS_IT_IS, AS_IT_IS)
) -> tuple[EmbeddingFunction, EmbeddingFunction]:
    """Both sides of a comparison; what is asked first, since a model takes longer to load than one to answer."""
    order = sorted((0, 1), key=lambda side: is_checkpoint(given[side]))
    opened = {side: open_function(given[side], options[side], asked[side]) for side in order}
    return opened[0], opened[1]
