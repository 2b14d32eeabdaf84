"""A checkpoint as an embedding function: its inside can be looked at, and a text's vector depends on nothing else."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from embaudit.checkpoint import Checkpoint, Encoder, LoadOptions, TextKind, load_checkpoint
from embaudit.checkpoint.settings import read_settings
from embaudit.checkpoint.tokenizer import NO_LIMIT
from embaudit.embedders.function import IN_ORDER, Answers, EmbeddingFunction, first_alike, similarity_named
from embaudit.steps.workers import settle
from embaudit.words.errors import CheckpointError, EmbauditError, MeasureError


class CheckpointFunction(EmbeddingFunction):
    """A loaded checkpoint.

    Args:
        name: as the user named it; by default, its reference.
        options: how it was loaded by its reference; None if it was not, so that no other process can.
    """

    kind = "checkpoint"
    may_depend_on_asking = False
    takes_roles = True
    checkpoint: Checkpoint

    def __init__(self, checkpoint: Checkpoint, name: str = "", options: LoadOptions | None = None) -> None:
        self.checkpoint = checkpoint
        if options is not None:
            here = replace(options, device=checkpoint.device, dtype=checkpoint.dtype)
            self.again = SameCheckpoint(checkpoint.resolved.pinned, checkpoint.checkpoint_id, here)
        self.name = name or str(checkpoint.resolved.ref)
        self.dimension = checkpoint.dimension
        self.similarity = declared_similarity(checkpoint)
        self.limit = checkpoint.max_length if checkpoint.max_length < NO_LIMIT else None
        self.identity = checkpoint.checkpoint_id
        prompts = checkpoint.recipe.prompts
        self.tells_roles_apart = prompts.query != prompts.document

    def read_as(self, role: TextKind) -> CheckpointFunction:
        """The same, of which a plain text is read as something."""
        found = copy(self)
        found.checkpoint = self.checkpoint.reading(role)
        return found

    @property
    def asked_as(self) -> str:
        kind = self.checkpoint.kind
        return super().asked_as if kind == "text" else f"{super().asked_as} as {kind}"

    def alike(self, role: TextKind) -> TextKind:
        prompts, limits = self.checkpoint.recipe.prompts.as_json(), self.checkpoint.limits
        return first_alike({one: (prompts[one], limits[one]) for one in IN_ORDER}, role)

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


@dataclass(frozen=True)
class SameCheckpoint:
    """A checkpoint as another process opens it: the same content, on the same kind of device, in the same precision.

    Raises:
        EmbauditError: if that process cannot.
    """

    reference: str
    checkpoint_id: str
    options: LoadOptions

    def __call__(self) -> CheckpointFunction:
        return _opened(self)


@lru_cache(maxsize=2)
def _opened(same: SameCheckpoint) -> CheckpointFunction:
    settle(same.options.device)
    where = f"A worker on {platform.node()}"
    try:
        checkpoint = load_checkpoint(same.reference, same.options, may_stay_in_files=True)
    except EmbauditError as error:
        is_missing = isinstance(error, CheckpointError)
        available = "Make the checkpoint available there under this name, and run the same command again."
        raise type(error)(
            f"{where} cannot open {same.reference}: {error.happened}",
            next_step=available if is_missing else error.next_step,
        ) from error
    if checkpoint.checkpoint_id != same.checkpoint_id:
        raise CheckpointError(
            f"{where} has another {same.reference}: {checkpoint.checkpoint_id}, and not {same.checkpoint_id}.",
            next_step="Give it the same files, and run the same command again.",
        )
    return CheckpointFunction(checkpoint)


def declared_similarity(checkpoint: Checkpoint) -> str:
    """``cosine``, or ``dot``, ``euclidean`` or ``manhattan`` if the checkpoint declares it."""
    return similarity_named(str(read_settings(checkpoint.resolved.folder).get("similarity_fn_name") or "cosine"))
