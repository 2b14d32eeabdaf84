"""A checkpoint as an embedding function: its inside can be looked at, and a text's vector depends on nothing else."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from embaudit.checkpoint import Checkpoint, Encoder, TextKind
from embaudit.checkpoint.settings import read_settings
from embaudit.checkpoint.tokenizer import NO_LIMIT
from embaudit.errors import MeasureError
from embaudit.functions.function import Answers, EmbeddingFunction, similarity_named


class CheckpointFunction(EmbeddingFunction):
    """A loaded checkpoint.

    Args:
        name: as the user named it; by default, its reference.
    """

    kind = "checkpoint"
    may_depend_on_asking = False
    takes_roles = True
    checkpoint: Checkpoint

    def __init__(self, checkpoint: Checkpoint, name: str = "") -> None:
        self.checkpoint = checkpoint
        self.name = name or str(checkpoint.resolved.ref)
        self.dimension = checkpoint.dimension
        self.similarity = declared_similarity(checkpoint)
        self.limit = checkpoint.max_length if checkpoint.max_length < NO_LIMIT else None
        self.identity = checkpoint.checkpoint_id
        prompts = checkpoint.recipe.prompts
        self.tells_roles_apart = prompts.query != prompts.document

    def encode(
        self, texts: Sequence[str], role: TextKind = "text", *, most: int | None = None, at_once: int = 1
    ) -> Answers:
        """A text without tokens, or of which the checkpoint gives NaN, has no vector, and stops nothing."""
        encoder = Encoder(self.checkpoint.reading(role))
        try:
            return Answers(encoder.encode_texts(texts))
        except MeasureError:
            vectors = np.full((len(texts), self.checkpoint.dimension), np.nan, dtype=np.float32)
            for place, text in enumerate(texts):
                try:
                    vectors[place] = encoder.encode_texts([text])[0]
                except MeasureError:
                    continue
            return Answers(vectors)


def declared_similarity(checkpoint: Checkpoint) -> str:
    """``cosine``, or ``dot``, ``euclidean`` or ``manhattan`` if the checkpoint declares it."""
    return similarity_named(str(read_settings(checkpoint.resolved.folder).get("similarity_fn_name") or "cosine"))
