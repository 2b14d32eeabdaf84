"""Asks an application what it has after each of its stages: its own code, a LangChain retriever, a Haystack pipeline.

Which of them an object is, is told by its methods; neither library is imported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from numbers import Integral
from typing import Any

from embaudit.embedders.object.carrier import object_name
from embaudit.embedders.object.interfaces import (
    EXAMPLE,
    MEND,
    RAISED,
    beside_results,
    has,
    import_object,
    instance_of,
    is_named_object,
    parameters,
    raised,
)
from embaudit.words.errors import EmbauditError, UsageError
from embaudit.words.sentences import cut, quoted

# What a retriever's only stage is called.
SHOWN = "shown"
FORM = "It gives a mapping for a query: the name of each stage, in order, and a list of ids (docs/why.md)."
# Inputs of a Haystack component that are the query, whatever type they are declared with.
QUERY_INPUTS = ("query", "text", "question")


class StageError(EmbauditError):
    """An application that fails, or gives no stages."""


@dataclass(frozen=True)
class StageRow:
    """What a stage gives in one place.

    Attributes:
        id: as it was given, as text; empty if it has none.
        score: None if none was given.
        text: of a document; None of an id alone.
        is_number: whether the id was given as a number.
    """

    id: str
    score: float | None = None
    text: str | None = None
    is_number: bool = False


Stages = Mapping[str, Sequence[StageRow]]
# What a stage takes from, by its name: all stages before it in a graph that is known.
Before = Mapping[str, frozenset[str]]


@dataclass(frozen=True)
class Application:
    """What is asked for the stages of a query.

    Attributes:
        name: what people call it.
        ask: gives, for a query, a mapping of lists; whatever a stranger's code makes of that.
        before: None if nobody says what a stage takes from.
    """

    name: str
    ask: Callable[[str], Any]
    before: Before | None = None

    def stages(self, query: str) -> Stages:
        """The stages of one query, in order.

        Raises:
            StageError: if it fails, or gives something else.
        """
        asked = f"{self.name}, asked {quoted(query)},"
        try:
            with beside_results():
                found = self.ask(query)
        except RAISED as error:
            raise StageError(f"{asked} fails: {raised(error)}", next_step=MEND) from error
        if not isinstance(found, Mapping):
            raise StageError(f"{asked} gives no mapping, but {_kind(found)}.", next_step=FORM)
        if not found:
            raise StageError(f"{asked} gives no stage at all.", next_step=FORM)
        return {str(name): self._rows(asked, str(name), rows) for name, rows in found.items()}

    def _rows(self, asked: str, stage: str, rows: Any) -> tuple[StageRow, ...]:
        if isinstance(rows, str | bytes | Mapping) or not isinstance(rows, Iterable):
            raise StageError(f"{asked} gives no list for the stage {stage}, but {_kind(rows)}.", next_step=FORM)
        found: list[StageRow] = []
        try:
            with beside_results():
                for row in rows:
                    found.append(row_of(row))
        except StageError as error:
            raise StageError(f"{asked} gives for the stage {stage} {error.happened}", next_step=FORM) from error
        except RAISED as error:
            raise StageError(f"{asked} fails in the stage {stage}: {raised(error)}", next_step=MEND) from error
        return tuple(found)


def open_application(given: Any) -> Application:
    """The application that an object is, or that ``python:MODULE:NAME`` names.

    Raises:
        UsageError: if it is none, or there is no such object.
        ObjectError: if it cannot be imported or made.
    """
    if isinstance(given, Mapping | Sequence) and not isinstance(given, str):
        raise UsageError(
            f"stages is {_kind(given)}, which cannot be asked.", next_step="Give a function of the query that gives it."
        )
    name = given if isinstance(given, str) else object_name(given)
    if isinstance(given, str):
        if not is_named_object(given):
            raise UsageError(f"--stages {given} names no Python object.", next_step=EXAMPLE)
        given = import_object(given)
    # What takes the query is asked; a class, or a function without arguments, makes what is.
    given, _ = instance_of(given, name)
    if _is_haystack(given):
        before = _before(given)
        return Application(name, lambda query: _haystack(given, query, list(before)), before)
    if has(given, "invoke"):
        return Application(name, lambda query: _langchain(given.invoke(query)))
    if callable(given):
        return Application(name, given)
    raise UsageError(
        f"{name} is {_kind(given)}, which cannot be asked.",
        next_step=f"Name a function of the query, a LangChain retriever or a Haystack pipeline. {FORM}",
    )


def row_of(given: Any) -> StageRow:
    """An id, an id or document with its score, or a document of LangChain or Haystack.

    Raises:
        StageError: if it is none of them.
    """
    if isinstance(given, tuple | list) and len(given) == 2:
        row = row_of(given[0])
        return StageRow(row.id, _number(given[1]), row.text, row.is_number)
    if isinstance(given, str):
        return StageRow(given)
    # numpy's numbers, too; True is none that anybody means.
    if isinstance(given, Integral) and given is not True and given is not False:
        return StageRow(str(int(given)), is_number=True)
    text = next((own for name in ("page_content", "content") if isinstance(own := getattr(given, name, None), str)), "")
    own = getattr(given, "id", None)
    if text or (own is not None and not isinstance(given, type)):
        own_id = "" if own is None else str(own)
        return StageRow(own_id, _number(getattr(given, "score", None)), text or None, isinstance(own, Integral))
    raise StageError(f"{_kind(given)}, which has no id: {cut(repr(given), 60)}.", next_step=FORM)


def _number(given: Any) -> float | None:
    try:
        return None if given is None else float(given)
    except (TypeError, ValueError):
        return None


def _kind(given: Any) -> str:
    return "None" if given is None else f"an object of the type {type(given).__name__}"


def _langchain(found: Any) -> Any:
    """A retriever gives what is shown; a chain that gives several lists by name has several stages."""
    return {SHOWN: found} if isinstance(found, Sequence) and not isinstance(found, str) else found


def _is_haystack(given: Any) -> bool:
    if not has(given, "run", "inputs"):
        return False
    return any(one.name == "include_outputs_from" for one in parameters(given.run) or ())


def _before(pipeline: Any) -> Before:
    """Of a pipeline's components in the order in which they run, all that stand before each."""
    direct: dict[str, list[str]] = {str(name): [] for name in pipeline.graph.nodes}
    for edge in pipeline.graph.edges:
        direct[str(edge[1])].append(str(edge[0]))
    try:
        order = list(TopologicalSorter(direct).static_order())
    except CycleError:
        # A loop has no order but that in which it was put together.
        order = list(direct)
    before: dict[str, frozenset[str]] = {}
    for name in order:
        before[name] = frozenset(direct[name]).union(*(before.get(one, frozenset()) for one in direct[name]))
    return before


def _haystack(pipeline: Any, query: str, order: Sequence[str]) -> dict[str, Any]:
    """Each component that gives documents is a stage."""
    found = pipeline.run(dict(_inputs(pipeline, query)), include_outputs_from=set(order))
    stages = {}
    for name in order:
        given = found.get(name)
        if isinstance(given, Mapping) and "documents" in given:
            stages[name] = given["documents"]
    return stages


def _inputs(pipeline: Any, query: str) -> Iterator[tuple[str, dict[str, str]]]:
    """The query, for every input that nothing else fills and that takes one."""
    for component, inputs in pipeline.inputs().items():
        wanted = {
            name: query
            for name, one in inputs.items()
            if name in QUERY_INPUTS or (one.get("is_mandatory") and one.get("type") is str)
        }
        if wanted:
            yield component, wanted
