"""A function whose plain texts are asked for as documents.

LangChain's, LlamaIndex's and Chroma's objects know documents and queries, and nothing else: each document gets what
the object puts before documents. Beside one of these, the plain texts of another function are no measure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from embaudit.embedders.function import Answers, EmbeddingFunction, WrappedFunction

if TYPE_CHECKING:
    from embaudit.checkpoint import TextKind


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
