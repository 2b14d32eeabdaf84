"""The noun: an embedding function gives vectors of texts, and knows what is known about it.

A function whose plain texts are asked for as documents.

LangChain's, LlamaIndex's and Chroma's objects know documents and queries, and nothing else: each document gets what
the object puts before documents. Beside one of these, the plain texts of another function are no measure.

An embedding function whose vectors an index stores: its first dimensions, whole numbers or bits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Self

import numpy as np

from embaudit.corpora.downstream import unit_rows
from embaudit.words.errors import UsageError

if TYPE_CHECKING:
    from embaudit.checkpoint import Checkpoint, TextKind


@dataclass(frozen=True)
class Answers:
    """What came back for some texts.

    Attributes:
        vectors: (N, D) float64; NaN where there is none.
        failures: why there is none, by place.
    """

    vectors: np.ndarray
    failures: dict[int, str] = field(default_factory=dict)


# Why there is no vector in base64 where one was asked for, and lists of numbers came.
LISTS = "it gives lists of numbers"
AS_SUCH: tuple[TextKind, TextKind] = ("query", "document")
IN_ORDER: tuple[TextKind, ...] = ("text", *AS_SUCH)
# What a wrapper has from the function that it wraps.
FACTS = (
    *("name", "kind", "interface", "dimension", "similarity", "limit", "identity", "checkpoint", "why_closed"),
    "asked_dimensions",
    *("takes_roles", "takes_plain_texts", "tells_roles_apart", "may_depend_on_asking", "takes_many_at_once"),
)


class EmbeddingFunction(ABC):
    """Gives one vector a text.

    What needs no more than vectors takes any of these. What looks at tokens, states or weights needs ``checkpoint`` and
    says *not measured* where it is None.

    Attributes:
        name: what people call it, without credentials.
        kind: what it is, as in "the endpoint …".
        interface: by which it is asked, as openai; empty of a checkpoint.
        dimension: of its vectors; None before the first one is known.
        similarity: the declared one: cosine, dot, euclidean or manhattan; None if it declares none.
        limit: tokens read of a text; None if all are, or nobody knows.
        identity: of its content; empty if it may change behind its name.
        checkpoint: its inside; None if that cannot be looked at.
        takes_roles: whether it can be asked for a query or a document as such.
        takes_plain_texts: whether it has a way for texts that are neither; if not, they are asked for as documents.
        tells_roles_apart: whether a query's vector may differ from a document's of the same text.
        may_depend_on_asking: whether a text's vector may depend on what else is asked, and how.
        takes_many_at_once: whether several requests may be on their way.
        why_closed: why its inside is not looked at, where somebody would expect it; empty if nobody would.
        asked_dimensions: how many numbers it is asked for in a vector; None for all.
        requests: sent until now.
        again: opens the same function in another process, once there however often it is called; None if only this
            process has it. Can be pickled.
    """

    name: str
    kind: str = "function"
    interface: str = ""
    dimension: int | None = None
    similarity: str | None = None
    limit: int | None = None
    identity: str = ""
    checkpoint: Checkpoint | None = None
    takes_roles: bool = False
    takes_plain_texts: bool = True
    tells_roles_apart: bool = False
    may_depend_on_asking: bool = True
    takes_many_at_once: bool = True
    why_closed: str = ""
    asked_dimensions: int | None = None
    requests: int = 0
    again: Callable[[], EmbeddingFunction] | None = None

    @abstractmethod
    def encode(
        self, texts: Sequence[str], role: TextKind = "text", *, most: int | None = None, at_once: int = 1
    ) -> Answers:
        """Vectors of texts.

        Args:
            role: what they are used as.
            most: texts handed over together; by default, as many as it takes.
            at_once: how many such requests at a time.

        Raises:
            EmbauditError: if it gives no vectors at all. That it fails on some texts is an answer.
        """

    def alike(self, role: TextKind) -> TextKind:
        """The first of text, query and document that is asked for in the same way, and so gets the same vector."""
        return role if self.takes_roles else "text"

    def encode_base64(self, texts: Sequence[str]) -> Answers | None:
        """Each text's vector, asked for in base64; None if it knows no such thing."""
        return None

    @property
    def typed(self) -> str:
        """What to type to name it."""
        return self.name

    @property
    def asked_as(self) -> str:
        """Everything that a vector depends on, as far as one who asks can know."""
        return f"{self.kind} {self.name} {self.identity}"

    @property
    def live(self) -> EmbeddingFunction:
        """The function itself, where this one keeps what it gave."""
        return self

    def knows_what(self, other: EmbeddingFunction) -> None:
        """Take over what is known of another function, which this one wraps."""
        for fact in FACTS:
            setattr(self, fact, getattr(other, fact))

    def close(self) -> None:  # noqa: B027 - most hold nothing
        """Give back what it holds."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class WrappedFunction(EmbeddingFunction):
    """Another function, asked or read otherwise: what is not said anew is its own."""

    def __init__(self, function: EmbeddingFunction) -> None:
        self.function = function
        self.knows_what(function)

    @property
    def requests(self) -> int:  # type: ignore[override]
        return self.function.requests

    @property
    def typed(self) -> str:
        return self.function.typed

    def alike(self, role: TextKind) -> TextKind:
        return self.function.alike(role)

    def close(self) -> None:
        self.function.close()


def similarity_named(declared: str) -> str:
    """The similarity that a name stands for, as checkpoints and vector stores declare it; cosine if it is another."""
    name = declared.lower()
    if name.startswith(("dot", "ip", "inner")):
        return "dot"
    return "euclidean" if name in ("euclidean", "l2") else "manhattan" if name in ("manhattan", "l1") else "cosine"


def first_alike(ways: Mapping[TextKind, object], role: TextKind) -> TextKind:
    """The first role that is asked for in the same way, of the ways to ask for each."""
    return next(one for one in IN_ORDER if ways[one] == ways[role])


def roles_to_compare(first: EmbeddingFunction, second: EmbeddingFunction) -> tuple[TextKind, ...]:
    """What two are compared on besides texts: as what both can be asked for, and one does not ask as it does for texts.

    Where both ask for queries, or documents, as they do for texts, comparing texts has compared these, too.
    """
    if not (first.takes_roles and second.takes_roles):
        return ()
    return tuple(role for role in AS_SUCH if {first.alike(role), second.alike(role)} != {"text"})


class AsDocuments(WrappedFunction):
    """Another function, which gives a text that is neither query nor document a document's vector."""

    def __init__(self, function: EmbeddingFunction) -> None:
        super().__init__(function)
        self.takes_plain_texts = False
        if function.checkpoint is not None:
            self.checkpoint = function.checkpoint.reading("document")

    @property
    def asked_as(self) -> str:
        return f"{self.function.asked_as} as documents"

    @property
    def live(self) -> EmbeddingFunction:
        return AsDocuments(self.function.live)

    def encode(
        self, texts: Sequence[str], role: TextKind = "text", *, most: int | None = None, at_once: int = 1
    ) -> Answers:
        return self.function.encode(texts, "document" if role == "text" else role, most=most, at_once=at_once)

    def alike(self, role: TextKind) -> TextKind:
        is_document = self.function.alike(role) == self.function.alike("document")
        return "text" if role != "query" or is_document else "query"


def taken_alike(first: EmbeddingFunction, second: EmbeddingFunction) -> tuple[EmbeddingFunction, EmbeddingFunction]:
    """The two as they can be compared: if one has no way for plain texts, documents are what both are asked for."""
    both = first, second
    if not all(one.takes_roles for one in both) or all(one.takes_plain_texts for one in both):
        return both
    one, two = (
        AsDocuments(each) if each.takes_plain_texts and each.alike("document") != "text" else each for each in both
    )
    return one, two


Stored = Literal["as given", "int8", "binary"]
# What an index multiplies unit vectors by before it rounds them.
INT8_SCALE = 127
STORED: dict[Stored, Callable[[np.ndarray], np.ndarray]] = {
    "as given": lambda rows: rows,
    "int8": lambda rows: np.round(unit_rows(rows) * INT8_SCALE),
    "binary": lambda rows: np.where(rows > 0, 1.0, -1.0),
}


class AsStored(EmbeddingFunction):
    """Another function's vectors as they are stored.

    Args:
        stored: how their numbers are.
        dimensions: how many of the first ones are kept; None for all.
    """

    def __init__(self, function: EmbeddingFunction, stored: Stored, dimensions: int | None = None) -> None:
        self.function, self.stored, self.kept = function, stored, dimensions
        self.knows_what(function)
        self.interface = f"{function.interface or function.kind}, stored {stored}"
        # Its content is another one, and so is its inside.
        self.dimension, self.identity, self.checkpoint = dimensions, "", None

    def encode(
        self, texts: Sequence[str], role: TextKind = "text", *, most: int | None = None, at_once: int = 1
    ) -> Answers:
        answers = self.function.encode(texts, role, most=most, at_once=at_once)
        self.requests = self.function.requests
        rows = answers.vectors
        if self.kept is not None and self.kept > rows.shape[1]:
            raise UsageError(
                f"There are {rows.shape[1]} dimensions to keep, not {self.kept}.", next_step="Keep as many, or fewer."
            )
        rows = rows[:, : self.kept]
        self.dimension = rows.shape[1]
        return Answers(np.where(np.isfinite(rows), STORED[self.stored](rows), np.nan), answers.failures)

    def alike(self, role: TextKind) -> TextKind:
        return self.function.alike(role)

    def close(self) -> None:
        self.function.close()
