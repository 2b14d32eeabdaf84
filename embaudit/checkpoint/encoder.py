"""Runs a checkpoint over many texts, in length-sorted batches under a token budget.

Every measure encodes through this class, so pooling, truncation and the NaN check are the same everywhere. It counts
``texts`` and ``tokens``, because encoding is the main cost of an audit.

Sequences with weighted tokens: 1 is an ordinary token, 0 none, w as if there were w copies in one position.

A key of weight w contributes w·exp(score) to every attention softmax (a mask of log w added to its score) and counts w
times in mean pooling. The vector is then a smooth function of the number of copies in each position, and its gradient
shows where another copy would move it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from embaudit.checkpoint.load import Checkpoint
from embaudit.checkpoint.memory import in_halves, tokens_within
from embaudit.checkpoint.pooling import pool
from embaudit.words.errors import MeasureError, NotMeasurable, one_line

if TYPE_CHECKING:
    import torch


# Measured (`python -m benchmarks encoding`): all-MiniLM-L6-v2 on 2 cores encodes 236 texts/s of 33 tokens at 2 048
# tokens per batch and 194 at 8 192, where activations no longer fit in the cache. A GPU needs much larger batches.
TOKENS_PER_BATCH = {"cpu": 2_048, "cuda": 131_072, "mps": 16_384}
Progress = Callable[[int], None]


def no_progress(done: int) -> None:
    """Report no progress."""


@contextmanager
def counted(model: torch.nn.Module) -> Iterator[list[int]]:
    """The number of texts in each batch that a model is given meanwhile, whoever gives them."""
    import torch

    batches: list[int] = []

    def note(_: torch.nn.Module, args: tuple[Any, ...], given: dict[str, Any]) -> None:
        batches.append(len(next(one for one in (*args, *given.values()) if isinstance(one, torch.Tensor))))

    hook = model.register_forward_pre_hook(note, with_kwargs=True)
    try:
        yield batches
    finally:
        hook.remove()


class Encoder:
    """Encodes texts or token ids as pooled vectors or token embeddings.

    Args:
        checkpoint: what to run.
        tokens_per_batch: maximum number of tokens (including padding) per forward pass; a longer text runs alone.
    """

    def __init__(self, checkpoint: Checkpoint, tokens_per_batch: int | None = None) -> None:
        self.checkpoint = checkpoint
        kind = checkpoint.device.split(":")[0]
        most = TOKENS_PER_BATCH.get(kind, 2_048)
        self.tokens_per_batch = tokens_per_batch or (tokens_within(checkpoint.model, most) if kind == "cpu" else most)
        self.texts = 0
        self.tokens = 0

    def tokenize(self, texts: Sequence[str], limit: int | None = None) -> list[list[int]]:
        """Token ids of each text, with prompt and special tokens.

        Args:
            limit: how many of its own tokens a text keeps; by default, as many as the checkpoint reads.
        """
        return self.checkpoint.tokenize(texts, limit)

    def pooled_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids from ``tokenize`` whose states are pooled, as in ``token_embeddings``."""
        return [ids[self.checkpoint.prompt.unpooled :] for ids in self.tokenize(texts)]

    def count_truncated(self, texts: Sequence[str]) -> int:
        """Number of texts longer than the checkpoint reads."""
        return sum(len(ids) > self.checkpoint.content_limit for ids in self.own_ids(texts))

    def own_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """The texts' own token ids as they are after the prompt, untruncated and without special tokens."""
        return self.checkpoint.own_ids(texts)

    def encode_texts(self, texts: Sequence[str], progress: Progress = no_progress) -> np.ndarray:
        """Pooled vectors of texts, (N, D) float32, in the order given."""
        return self.encode_ids(self.tokenize(texts), progress)

    def encode_ids(self, sequences: Sequence[Sequence[int]], progress: Progress = no_progress) -> np.ndarray:
        """Pooled vectors of id sequences (prompt and special tokens included), (N, D) float32, in the order given.

        Raises:
            MeasureError: if a vector is not finite, naming the sequence.
        """
        vectors = np.empty((len(sequences), self.checkpoint.dimension), dtype=np.float32)
        for indices, batch in self._encoded(sequences, self._pooled):
            _require_finite(batch, indices, sequences)
            vectors[indices] = batch
            progress(len(indices))
        return vectors

    def encode_dense(self, ids: torch.Tensor) -> torch.Tensor:
        """Pooled vectors of sequences of equal length, without padding.

        Args:
            ids: (B, n) int64 token ids, prompt and special tokens included, on any device.

        Returns:
            (B, D) float32 on the checkpoint's device.
        """
        import torch

        if len(ids) == 0:
            return torch.empty((0, self.checkpoint.dimension), device=self.checkpoint.device)
        if ids.shape[1] == 0:
            raise _no_tokens(0)
        self._require_known(int(ids.max()))
        ids = ids.to(self.checkpoint.device)
        rows = max(1, self.tokens_per_batch // ids.shape[1])
        parts = (in_halves(self._pooled, part, torch.ones_like(part), self._lower) for part in torch.split(ids, rows))
        vectors = torch.cat([found for part in parts for _, found in part])
        if not torch.isfinite(vectors).all():
            row = int(torch.nonzero(~torch.isfinite(vectors).all(dim=1))[0])
            raise _not_finite(ids[row].tolist())
        return vectors

    def token_embeddings(self, texts: Sequence[str]) -> Iterator[tuple[int, np.ndarray]]:
        """Final token embeddings X of each text, as (index, (n, d) float32), shortest texts first.

        These are the embeddings that mean pooling averages: including special tokens, and the prompt unless it is
        excluded from pooling.
        """
        yield from self.token_embeddings_of_ids(self.tokenize(texts))

    def token_embeddings_of_ids(self, sequences: Sequence[Sequence[int]]) -> Iterator[tuple[int, np.ndarray]]:
        """The same for id sequences (prompt and special tokens included)."""
        for indices, X in self._encoded(sequences, self._hidden):
            _require_finite(X.reshape(len(indices), -1), indices, sequences)
            for row, index in enumerate(indices):
                yield int(index), X[row, self.checkpoint.prompt.unpooled : len(sequences[index])]

    def _encoded(
        self, sequences: Sequence[Sequence[int]], forward: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """What the forward pass gives for batches of similar length: (indices, float32 array with a row for each)."""
        for indices, ids, mask in self._batches(sequences):
            for rows, found in in_halves(lambda *part: forward(*part).float().cpu().numpy(), ids, mask, self._lower):
                yield indices[rows], found

    def _lower(self, tokens: int) -> None:
        self.tokens_per_batch = min(self.tokens_per_batch, tokens)

    def _batches(self, sequences: Sequence[Sequence[int]]) -> Iterator[tuple[np.ndarray, torch.Tensor, torch.Tensor]]:
        """Right-padded batches of similar length: (indices, ids (B, n), mask (B, n))."""
        import torch

        lengths = np.array([len(sequence) for sequence in sequences], dtype=np.int64)
        if len(lengths) and lengths.min() == 0:
            raise _no_tokens(int(lengths.argmin()))
        order = np.argsort(lengths, kind="stable")
        start = 0
        while start < len(order):
            stop = start + 1
            # Sorted by length, so the next text sets the width of the batch.
            while stop < len(order) and (stop - start + 1) * lengths[order[stop]] <= self.tokens_per_batch:
                stop += 1
            indices = order[start:stop]
            width = int(lengths[indices[-1]])
            ids = np.full((len(indices), width), self._pad_id(), dtype=np.int64)
            mask = np.zeros((len(indices), width), dtype=np.int64)
            for row, index in enumerate(indices):
                ids[row, : lengths[index]] = sequences[index]
                mask[row, : lengths[index]] = 1
            self._require_known(int(ids.max()))
            device = self.checkpoint.device
            yield indices, torch.from_numpy(ids).to(device), torch.from_numpy(mask).to(device)
            start = stop

    def _require_known(self, token_id: int) -> None:
        # On a GPU, an id outside the embedding matrix makes the device unusable for the whole process.
        if token_id >= self.checkpoint.vocabulary_size:
            raise MeasureError(
                f"The tokenizer gives token {token_id}, but {self.checkpoint.resolved.ref} has embeddings for only "
                f"{self.checkpoint.vocabulary_size} tokens.",
                next_step="Check that tokenizer and weights belong together.",
            )

    def _pad_id(self) -> int:
        pad = self.checkpoint.tokenizer.pad_token_id
        # Padding is masked, so any token will do if the tokenizer's pad token has no embedding.
        return 0 if pad is None or pad >= self.checkpoint.vocabulary_size else int(pad)

    def _hidden(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        import torch

        with torch.inference_mode():
            hidden: torch.Tensor = self.checkpoint.model(**self.checkpoint.inputs(ids, mask)).last_hidden_state
        self.texts += len(ids)
        self.tokens += int(mask.sum())
        return hidden

    def _pooled(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        import torch

        hidden = self._hidden(ids, mask)
        with torch.inference_mode():
            pooled = pool(hidden, mask, self.checkpoint.recipe.pooling, self.checkpoint.prompt.unpooled)
            vectors: torch.Tensor = self.checkpoint.after_pooling(pooled)
        return vectors.float()


def _require_finite(rows: np.ndarray, indices: np.ndarray, sequences: Sequence[Sequence[int]]) -> None:
    finite = np.isfinite(rows).all(axis=1)
    if not finite.all():
        raise _not_finite(list(sequences[indices[int(np.argmin(finite))]]))


def _no_tokens(text: int) -> MeasureError:
    return MeasureError(
        f"Text {text} has no tokens: this tokenizer adds no special tokens.",
        next_step="Remove blank texts from the corpus.",
    )


def _not_finite(ids: list[int]) -> MeasureError:
    shown = " ".join(map(str, ids[:12])) + (" …" if len(ids) > 12 else "")
    return MeasureError(
        f"The checkpoint gives NaN or infinity for the token ids {shown}.",
        kept="Everything staged before this text is kept.",
        next_step="In half precision, try --dtype float32; otherwise the checkpoint is damaged.",
    )


# A weight that must not affect the vector.
NOTHING, TOLERANCE = 1e-8, 1e-4


def weighted_vectors(
    checkpoint: Checkpoint, ids: torch.Tensor, positions: torch.Tensor, weights: torch.Tensor
) -> torch.Tensor:
    """(B, D) float32 unit vectors, differentiable with respect to the weights.

    Args:
        ids: (B, n) token ids, prompt and special tokens included.
        positions: (B, n) position of each in the text, from 0; candidates for the same position share it.
        weights: (B, n) float32, above 0.
    """
    import torch

    count = ids.shape[1]
    bias = torch.log(weights)[:, None, None, :].expand(-1, 1, count, count)
    model = checkpoint.model
    inputs = checkpoint.inputs(ids, torch.ones_like(ids))
    inputs |= {"attention_mask": bias.to(next(model.parameters()).dtype)}
    hidden = model(**inputs, position_ids=positions + _first_position(model)).last_hidden_state
    pooled = pool(hidden, weights, checkpoint.recipe.pooling, checkpoint.prompt.unpooled)
    return torch.nn.functional.normalize(checkpoint.after_pooling(pooled).float(), dim=1)


def require_weights(encoder: Encoder) -> None:
    """Raise unless a token of weight 0 leaves a text's vector unchanged.

    Raises:
        NotMeasurable: if the model does not support such masks or positions, or interprets them differently.
    """
    import torch

    checkpoint = encoder.checkpoint
    name = type(checkpoint.model).__name__
    text = checkpoint.with_special_tokens([5, 6, 7])
    place = len(checkpoint.prefix_ids) + len(checkpoint.prompt.ids) + 1
    ids = torch.tensor([[*text[:place], 5, *text[place:]]], device=checkpoint.device)
    positions = torch.tensor([[*range(place + 1), *range(place, len(text))]], device=checkpoint.device)
    weights = torch.ones(ids.shape, device=checkpoint.device)
    weights[0, place] = NOTHING
    plain = torch.nn.functional.normalize(encoder.encode_dense(torch.tensor([text])), dim=1)
    try:
        with torch.no_grad():
            found = weighted_vectors(checkpoint, ids, positions, weights)
    except Exception as error:  # custom model code may raise anything
        raise NotMeasurable(f"{name} does not support token weights: {one_line(error)}.") from error
    if not torch.allclose(found, plain, atol=TOLERANCE):
        raise NotMeasurable(f"{name} does not apply token weights and positions as given.")


def _first_position(model: torch.nn.Module) -> int:
    """The first position: RoBERTa and similar models count from padding_idx + 1."""
    table = getattr(getattr(model, "embeddings", None), "position_embeddings", None)
    padding = getattr(table, "padding_idx", None)
    return 0 if padding is None else int(padding) + 1
