"""Encodes texts with an ONNX file: onnxruntime between the checkpoint's own tokenizer and its own pooling.

A file may end at the states of the tokens, which are then pooled here, or have pooling in it: its outputs are
``readings``, and each is a function of its own.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from embaudit.checkpoint.load import Checkpoint
from embaudit.checkpoint.onnx_file import OnnxFile
from embaudit.checkpoint.pooling import pool
from embaudit.words.errors import CheckpointError, UsageError, one_line

if TYPE_CHECKING:
    import torch

INSTALL = "pip install 'embaudit[onnx]'"
ELSEWHERE = "Run it where it is served, and compare that: embaudit parity CHECKPOINT --with ADDRESS"
# What exporters call the model's arguments, and what each is here.
IDS, MASK, SEGMENTS, POSITIONS = "input_ids", "attention_mask", "token_type_ids", "position_ids"
INPUTS = {
    **{name: name for name in (IDS, MASK, SEGMENTS, POSITIONS)},
    **{"input_mask": MASK, "mask": MASK, "segment_ids": SEGMENTS, "input": IDS, "ids": IDS},
}
NUMBERS = {"tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(bool)": np.bool_}
NUMBERS |= {"tensor(float)": np.float32, "tensor(float16)": np.float16}
# In the order in which servers look for them; any other output of the right number of dimensions comes after.
STATES = ("last_hidden_state", "token_embeddings")
VECTORS = ("sentence_embedding", "embeddings", "text_embeds")
# Of a head that no embedding goes through, and of a language model.
NO_STATES, NO_VECTORS = ("logits", "prediction_logits"), ("pooler_output",)


def has_onnxruntime() -> bool:
    return importlib.util.find_spec("onnxruntime") is not None


class OnnxModel:
    """An ONNX file in onnxruntime, on the processor.

    Raises:
        UsageError: if onnxruntime is not installed.
        CheckpointError: if it cannot run the file, or the file needs or gives something else than an encoder.
    """

    def __init__(self, file: OnnxFile) -> None:
        if not has_onnxruntime():
            raise UsageError("onnxruntime, which runs ONNX files, is not installed.", next_step=INSTALL)
        import onnxruntime
        import torch

        self.file = file
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4  # what fails is raised
        options.intra_op_num_threads = torch.get_num_threads()
        try:
            # No library of operators is registered: a file cannot bring code of its own.
            self.session = onnxruntime.InferenceSession(
                str(file.path), sess_options=options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # onnxruntime has a dozen of its own
            raise CheckpointError(
                f"onnxruntime {onnxruntime.__version__} does not run {file.path}: {_reason(error)}",
                next_step=ELSEWHERE,
            ) from error
        self.inputs = {one.name: one for one in self.session.get_inputs()}
        unknown = [name for name in self.inputs if _argument(name) is None]
        if unknown or not any(_argument(name) == IDS for name in self.inputs):
            what = f"needs {unknown[0]}" if unknown else "takes no token ids"
            raise CheckpointError(
                f"{file.path} {what}: it is no encoder of token ids, a mask and segment ids.",
                next_step="Export it as an encoder (feature-extraction).",
            )
        ids = next(one for name, one in self.inputs.items() if _argument(name) == IDS)
        shape = ids.shape if isinstance(ids.shape, list) and len(ids.shape) == 2 else [None, None]
        # A size that is fixed in the file; None for any.
        self.batch, self.length = (size if isinstance(size, int) and size > 0 else None for size in shape)
        if not self.readings:
            names = ", ".join(one.name for one in self.session.get_outputs())
            raise CheckpointError(
                f"{file.path} gives neither states nor a vector, but {names}.",
                next_step="Export it as an encoder (feature-extraction).",
            )

    @cached_property
    def readings(self) -> tuple[str, ...]:
        """Its outputs that a server could take as vectors: the states that would be pooled, then vectors."""
        ranks = {one.name: len(one.shape) for one in self.session.get_outputs() if isinstance(one.shape, list)}
        states = _in_order([name for name, rank in ranks.items() if rank == 3 and name not in NO_STATES], STATES)
        vectors = _in_order([name for name, rank in ranks.items() if rank == 2], VECTORS)
        served = [name for name in vectors if name not in NO_VECTORS]
        # The pooler's output is taken where there is nothing else.
        return (*states[:1], *(served[:1] or ([] if states else vectors[:1])))

    def is_pooled(self, reading: str) -> bool:
        """Whether pooling is in the file."""
        return next(len(one.shape) for one in self.session.get_outputs() if one.name == reading) == 2

    def run(self, reading: str, given: dict[str, np.ndarray]) -> np.ndarray:
        """One output, float32, for ids, mask, segments and positions (B, n) by name."""
        sent: dict[str, np.ndarray] = {
            name: given[argument].astype(NUMBERS.get(one.type, np.int64))
            for name, one in self.inputs.items()
            if (argument := _argument(name)) is not None
        }
        found: Any = self.session.run([reading], sent)[0]
        return np.asarray(found, dtype=np.float32)


class OnnxEncoder:
    """Encodes texts as a checkpoint would be read, with what an ONNX file computes in place of the network.

    Args:
        model: the file.
        checkpoint: whose tokenizer, limits and pooling are used.
        reading: the output that is taken; by default, the first of ``model.readings``.

    Attributes:
        failures: why a text got no vector, by text.
    """

    def __init__(self, model: OnnxModel, checkpoint: Checkpoint, reading: str | None = None) -> None:
        self.model = model
        self.checkpoint = checkpoint
        self.reading = reading or model.readings[0]
        self.failures: dict[str, str] = {}
        self._width = 0

    def rows(self, texts: Sequence[str], at_once: int = 1) -> np.ndarray:
        """(n, D) float64 vectors, in batches of ``at_once``; NaN where a text has none. D is 0 until one has."""
        sequences = self.checkpoint.tokenize(texts)
        found: list[np.ndarray | None] = [None] * len(texts)
        at_once = min(at_once, self.model.batch or at_once)
        for start in range(0, len(texts), at_once):
            places = list(range(start, min(start + at_once, len(texts))))
            for place, made in zip(places, self._rows([sequences[place] for place in places]), strict=True):
                if isinstance(made, str):
                    self.failures[texts[place]] = made
                else:
                    found[place] = made
        self._width = self._width or next((len(row) for row in found if row is not None), 0)
        rows = np.full((len(texts), self._width), np.nan)
        for place, row in enumerate(found):
            if row is not None and len(row) == self._width:
                rows[place] = row
        return rows

    def _rows(self, sequences: Sequence[Sequence[int]]) -> list[np.ndarray | str]:
        """A vector, or why there is none, of each sequence of one batch."""
        fits = [place for place, ids in enumerate(sequences) if 0 < len(ids) <= (self.model.length or len(ids))]
        found: list[np.ndarray | str] = [
            "it has no tokens" if not ids else f"the file takes {self.model.length} tokens, and it has {len(ids)}"
            for ids in sequences
        ]
        if fits:
            try:
                vectors: list[np.ndarray | str] = list(self._vectors([sequences[place] for place in fits]))
            except Exception as error:  # shapes that the file does not take fail where they meet an operator
                vectors = [_reason(error)] * len(fits)
            for place, vector in zip(fits, vectors, strict=True):
                found[place] = vector
        return found

    def _vectors(self, sequences: Sequence[Sequence[int]]) -> np.ndarray:
        """(B, D) float32 of one batch, padded on the right, or to the size that the file has."""
        import torch

        checkpoint = self.checkpoint
        width, height = self.model.length or max(map(len, sequences)), max(self.model.batch or 0, len(sequences))
        pad = checkpoint.tokenizer.pad_token_id
        ids = np.full((height, width), pad if pad is not None and pad < checkpoint.vocabulary_size else 0)
        mask = np.zeros((height, width), dtype=np.int64)
        for row in range(height):
            # A batch of a fixed size is filled up with its first text.
            one = sequences[row if row < len(sequences) else 0]
            ids[row, : len(one)], mask[row, : len(one)] = one, 1
        attended = torch.from_numpy(mask)
        segments = np.zeros_like(mask) if checkpoint.segments is None else checkpoint.segments.of(attended).numpy()
        positions = np.broadcast_to(np.arange(width), mask.shape)
        given = {IDS: ids, MASK: mask, SEGMENTS: segments, POSITIONS: positions}
        found = self.model.run(self.reading, given)[: len(sequences)]
        return found if self.model.is_pooled(self.reading) else self._pooled(found, attended[: len(sequences)])

    def _pooled(self, states: np.ndarray, mask: torch.Tensor) -> np.ndarray:
        import torch

        checkpoint = self.checkpoint
        device = checkpoint.device
        with torch.inference_mode():
            pooled = pool(
                torch.from_numpy(states).to(device),
                mask.to(device),
                checkpoint.recipe.pooling,
                checkpoint.prompt.unpooled,
            )
            vectors: torch.Tensor = checkpoint.after_pooling(pooled)
        return vectors.float().cpu().numpy()


def _argument(name: str) -> str | None:
    """Which argument an input is, by what exporters call it (``input_ids:0``); None if it is none of them."""
    return INPUTS.get(name.partition(":")[0])


def _in_order(names: Sequence[str], first: Sequence[str]) -> list[str]:
    return sorted(names, key=lambda name: first.index(name) if name in first else len(first))


def _reason(error: Exception) -> str:
    """onnxruntime's own message, without its codes, the file's path and the place in its source."""
    codes = r"^\[ONNXRuntimeError\] : \d+ : \w+ : (/\S+ \S.*?\) )?(Load model from .*? failed: ?)?"
    return one_line(RuntimeError(re.sub(codes, "", str(error), flags=re.DOTALL)))
