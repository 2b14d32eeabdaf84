"""A Python object as an embedding function.

What a Python object gives for some texts, as one vector a text: arrays, tensors, tables, lists and generators.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from embaudit.checkpoint.prompts import NO_PROMPTS, Prompts
from embaudit.embedders.function import IN_ORDER, Answers, EmbeddingFunction, first_alike, similarity_named
from embaudit.embedders.object.interfaces import (
    LOOKED_FOR,
    MEND,
    RAISED,
    Interface,
    ObjectError,
    Way,
    beside_results,
    instance_of,
    interface_of,
    other_kind,
    raised,
)
from embaudit.embedders.parts import GONE, Unanswered, encode_in_parts
from embaudit.words.errors import UsageError

if TYPE_CHECKING:
    from embaudit.checkpoint import TextKind


PER_TOKEN = "one vector a token, where there should be one a text"


class NotRows(Unanswered):
    """What an object gives is not one vector a text; the message says what it is, as the end of "it gives …"."""

    def __init__(self, given: str, *, is_a_count: bool = False) -> None:
        super().__init__(f"it gives {given}")
        self._is_a_count = is_a_count

    @property
    def may_be_one_text(self) -> bool:
        return not self._is_a_count


def rows_of(given: Any, texts: int) -> list[np.ndarray]:
    """(texts,) vectors, each (D,) float64 and a copy: some objects reuse what they gave.

    Raises:
        NotRows: if it is anything else.
    """
    rows = _listed(given, texts)
    if len(rows) != texts:
        more = "more than " if len(rows) > texts and not isinstance(given, Sequence | np.ndarray) else ""
        count = texts if more else len(rows)
        raise NotRows(
            f"{more}{count} vector{'' if count == 1 else 's'} for {texts} text{'' if texts == 1 else 's'}",
            is_a_count=True,
        )
    return [_vector(row) for row in rows]


def _listed(given: Any, texts: int) -> Sequence[Any]:
    """The rows in what was given, of no more than one more than there are texts."""
    _refuse(given)
    plain = _as_array(given)
    if isinstance(plain, np.ndarray):
        if plain.ndim == 1 and plain.dtype != object:
            raise NotRows(f"one list of {len(plain)} numbers for {texts} texts, where there should be a vector each")
        if plain.ndim > 2:
            raise NotRows(f"an array of shape {plain.shape}: {PER_TOKEN}")
        if plain.ndim == 0:
            raise NotRows(f"a {type(given).__name__}, no vectors")
        return list(plain)
    if not isinstance(plain, Iterable):
        raise NotRows(f"a {type(given).__name__}, no vectors")
    rows = list(plain) if isinstance(plain, Sequence) else list(islice(plain, texts + 1))
    if rows and all(isinstance(row, int | float | np.number) for row in rows):
        raise NotRows(f"one list of {len(rows)} numbers for {texts} texts, where there should be a vector each")
    return rows


def _refuse(given: Any) -> None:
    """What could be iterated over, or looks like rows, and is none."""
    if inspect.iscoroutine(given):
        given.close()
    if inspect.isawaitable(given) or hasattr(given, "__aiter__"):
        raise NotRows(
            "a coroutine: it is async, and embaudit asks what is not (lambda texts: asyncio.run(NAME(texts)))"
        )
    if given is None:
        raise NotRows("None")
    if isinstance(given, str | bytes):
        raise NotRows("a text, no vectors")
    if isinstance(given, Mapping):
        keys = ", ".join(repr(key) for key in islice(given, 5))
        raise NotRows(f"a {type(given).__name__} with {keys or 'nothing in it'}, no vectors")
    if isinstance(given, Set):
        raise NotRows("a set, which has no order")
    if callable(getattr(given, "toarray", None)) or getattr(given, "is_sparse", False) is True:
        raise NotRows("a sparse matrix, no dense vector a text")


def _as_array(given: Any) -> Any:
    """Tensors of torch and TensorFlow, and tables of pandas, polars and Arrow, as arrays; anything else as it is."""
    if isinstance(given, np.ma.MaskedArray):
        return np.ma.filled(given.astype(np.float64), np.nan)
    if isinstance(given, np.ndarray):
        return given
    if callable(getattr(given, "detach", None)):
        given = given.detach().cpu()
        # numpy has no bfloat16.
        return np.asarray((given.float() if given.is_floating_point() else given).numpy())
    for method in ("to_numpy", "numpy"):
        if callable(getattr(given, method, None)):
            return np.asarray(getattr(given, method)())
    return np.asarray(given) if hasattr(given, "__array__") and np.ndim(given) else given


def _vector(row: Any) -> np.ndarray:
    _refuse(row)
    if not (isinstance(row, Iterable) or hasattr(row, "__array__")):
        raise NotRows(f"a list of {type(row).__name__}, not of vectors")
    plain = _as_array(row)
    if not isinstance(plain, np.ndarray):
        plain = list(plain)
        if any(isinstance(value, str | bytes) for value in plain):
            raise NotRows("texts in place of numbers")
        if any(_has_length(value) for value in plain):
            raise NotRows(PER_TOKEN)
        plain = np.array([np.nan if value is None else value for value in plain])
    if plain.ndim != 1:
        raise NotRows(PER_TOKEN if plain.ndim > 1 else f"a list of {type(row).__name__}, not of vectors")
    if not len(plain):
        raise NotRows("an empty vector")
    if plain.dtype.kind in "USmMc":
        raise NotRows(f"numbers of type {plain.dtype}, no real ones")
    try:
        return np.array(plain, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise NotRows("something that is no number in a vector") from error


def _has_length(value: Any) -> bool:
    """Whether this is a list of its own; a number in an array can be iterated over, too, until one tries."""
    return isinstance(value, Iterable) and np.ndim(value) > 0  # type: ignore[arg-type]


# Texts that are handed over together, unless somebody says otherwise.
MOST_TEXTS = 64
# What is said of an object that a class or a factory gave.
MADE = ", made by calling it"
# Where an object says how many tokens it reads.
LIMITS = ("max_seq_length", "max_length")
ROLES = ("query", "document")
PAIR = "Give two: (of_queries, of_documents), or a dict with query and document."


class ObjectFunction(EmbeddingFunction):
    """An object that offers one of ``INTERFACES``, or a pair of them: one for queries, one for documents.

    It is asked in the caller's thread, one request after the other, unless it may be asked by several at once.

    Args:
        given: the object; a class or a function without arguments is called to make it. A pair is a tuple (query,
            document), or a dict with these keys.
        name: as the user named it; by default, that of its type.
        prompts: what its callers put before texts of each role.
        takes_many_at_once: whether several threads may ask it.

    Raises:
        UsageError: if it offers nothing that is known.
        ObjectError: if it cannot be made.
    """

    kind = "function"
    takes_many_at_once = False

    def __init__(
        self, given: Any, name: str = "", *, prompts: Prompts = NO_PROMPTS, takes_many_at_once: bool = False
    ) -> None:
        self.name = name or object_name(given)
        self.prompts, self.takes_many_at_once = prompts, takes_many_at_once
        self.requests = 0
        queries, documents = _pair(given) or (given, None)
        self._queries, offered = self._opened(queries)
        self._documents, of_documents = (self._queries, offered) if documents is None else self._opened(documents)
        self.interface = offered.name
        if documents is not None:
            self.interface = f"{offered.name} for queries, {of_documents.name} for documents"
        self._ways: dict[TextKind, tuple[Any, Way]] = {
            "query": (self._queries, offered.query or offered.document),
            "document": (self._documents, of_documents.document),
            "text": (self._documents, of_documents.text or of_documents.document),
        }
        self.takes_roles = documents is not None or offered.query is not None or prompts != NO_PROMPTS
        self.tells_roles_apart = documents is not None or offered.query is not None or prompts.query != prompts.document
        tells_apart = documents is not None or offered.query is not None
        is_a_document = self._ways["text"] == self._ways["document"] and prompts.text == prompts.document
        self.takes_plain_texts = not (tells_apart and is_a_document)
        self.limit, self.similarity = _limit(self._documents), _similarity(self._documents)

    def _opened(self, given: Any) -> tuple[Any, Interface]:
        """The object, ready to be asked, and what it offers."""
        found, made = instance_of(given, self.name)
        if other := other_kind(found):
            raise UsageError(
                f"{self.name}{made} is {other}.",
                next_step="embaudit compares functions that give one dense vector a text.",
            )
        offered = interface_of(found)
        if offered is None:
            raise UsageError(
                f"{self.name}{made}, a {type(found).__name__}, offers nothing that gives vectors: {LOOKED_FOR}.",
                next_step="Give a function that takes a list of texts and returns their vectors.",
            )
        if offered.methods == ("run",) and callable(getattr(found, "warm_up", None)):
            try:
                with beside_results():
                    found.warm_up()
            except RAISED as error:
                raise ObjectError(f"{self.name} does not warm up: {raised(error)}", next_step=MEND) from error
        return found, replace(offered, name=offered.name + MADE) if made else offered

    def encode(
        self, texts: Sequence[str], role: TextKind = "text", *, most: int | None = None, at_once: int = 1
    ) -> Answers:
        """Vectors of texts.

        Raises:
            ObjectError: if none of the first texts has one, nor a plain one.
        """
        given, way = self._ways[role]
        prompt = getattr(self.prompts, role)

        def ask(some: list[str]) -> list[Any]:
            self.requests += 1
            try:
                with beside_results():
                    return rows_of(way(given, [prompt + text for text in some]), len(some))
            except Unanswered:
                raise
            except RAISED as error:
                raise Unanswered(raised(error).rstrip(".")) from error

        answers = encode_in_parts(
            ask,
            texts,
            most or MOST_TEXTS,
            at_once if self.takes_many_at_once else 1,
            dimension=self.dimension,
            gone=partial(self._gone, role),
        )
        self.dimension = self.dimension or answers.vectors.shape[1] or None
        return answers

    def alike(self, role: TextKind) -> TextKind:
        return first_alike({one: (*self._ways[one], getattr(self.prompts, one)) for one in IN_ORDER}, role)

    @property
    def asked_as(self) -> str:
        return f"{super().asked_as} {self.prompts.as_json()}"

    def _gone(self, role: TextKind, failed: Unanswered) -> ObjectError:
        return ObjectError(
            f"{self.name} gives no vector of the first {GONE} {'queries' if role == 'query' else 'texts'}: {failed}.",
            next_step=f"It is asked as {self.interface}. Give a function that takes a list of texts and returns their "
            "vectors.",
        )


def object_name(given: Any) -> str:
    """A short name of what has none: a function's own, or the name of its type."""
    pair = _pair(given)
    if pair is not None:
        return " and ".join(object_name(one) for one in pair)
    named = given if inspect.isroutine(given) or inspect.isclass(given) else type(given)
    name = str(getattr(named, "__qualname__", type(given).__name__)).rsplit("<locals>.", 1)[-1]
    return name.replace("<lambda>", "lambda")


def _pair(given: Any) -> tuple[Any, Any] | None:
    """The two objects of a pair, for queries and for documents; None if it is none."""
    if isinstance(given, Mapping):
        if set(given) != set(ROLES):
            raise UsageError(
                f"A pair of functions is a dict with query and document, not with {', '.join(map(str, given))}.",
                next_step=PAIR,
            )
        return given["query"], given["document"]
    if isinstance(given, tuple | list):
        if len(given) != 2:
            raise UsageError(f"A pair of functions is (query, document), not {len(given)} of them.", next_step=PAIR)
        return given[0], given[1]
    return None


def _limit(given: Any) -> int | None:
    """Tokens that it reads of a text, if it says so."""
    for name in LIMITS:
        found = _said(given, name)
        if isinstance(found, int) and not isinstance(found, bool) and 0 < found < 1_000_000:
            return found
    return None


def _similarity(given: Any) -> str | None:
    """The declared one, as sentence-transformers and Chroma do."""
    declared = _said(given, "similarity_fn_name")
    if declared is None and callable(getattr(given, "default_space", None)):
        try:
            declared = given.default_space()
        except RAISED:
            return None
    return similarity_named(declared) if isinstance(declared, str) else None


def _said(given: Any, name: str) -> Any:
    """An attribute of a stranger's object; None if it has none, or raises."""
    try:
        return getattr(given, name, None)
    except RAISED:
        return None
