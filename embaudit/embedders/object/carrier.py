"""A Python object as an embedding function."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from embaudit.checkpoint.prompts import NO_PROMPTS, Prompts
from embaudit.embedders.function import IN_ORDER, Answers, EmbeddingFunction, first_alike, similarity_named
from embaudit.embedders.object.interfaces import LOOKED_FOR, Interface, Way, interface_of, other_kind
from embaudit.embedders.object.named import MEND, RAISED, ObjectError, beside_results, instance_of, raised
from embaudit.embedders.object.rows import rows_of
from embaudit.embedders.parts import GONE, Unanswered, encode_in_parts
from embaudit.words.errors import UsageError

if TYPE_CHECKING:
    from embaudit.checkpoint import TextKind

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
