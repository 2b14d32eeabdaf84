"""The other function, where it is no endpoint: a checkpoint in some backend, its vectors as an index stores them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from embaudit.checkpoint import Checkpoint, Encoder
from embaudit.downstream.task import unit_rows
from embaudit.endpoint.client import Answers
from embaudit.errors import CheckpointError, EmbauditError, UsageError, one_line

if TYPE_CHECKING:
    from embaudit.checkpoint import ResolvedCheckpoint

Backend = Literal["torch", "onnx", "openvino"]
Stored = Literal["as given", "int8", "binary"]
# What an index multiplies unit vectors by before it rounds them.
INT8_SCALE = 127
STORED: dict[Stored, Callable[[np.ndarray], np.ndarray]] = {
    "as given": lambda rows: rows,
    "int8": lambda rows: np.round(unit_rows(rows) * INT8_SCALE),
    "binary": lambda rows: np.where(rows > 0, 1.0, -1.0),
}


@dataclass(frozen=True)
class OtherCheckpoint:
    """A checkpoint's vectors as they are stored.

    Attributes:
        rows: (n, D) vectors of texts; NaN where there is none.
        failures: why a text that was asked for has none, by text; as far as it is known.
        stored: how their numbers are.
        dimensions: how many of the first ones are kept; None for all.
    """

    rows: Callable[[Sequence[str]], np.ndarray]
    stored: Stored = "as given"
    dimensions: int | None = None
    failures: Mapping[str, str] = field(default_factory=dict)

    def encode(self, texts: Sequence[str]) -> Answers:
        rows = self.rows(texts)
        if self.dimensions is not None and self.dimensions > rows.shape[1]:
            raise UsageError(f"There are {rows.shape[1]} dimensions to keep, not {self.dimensions}.")
        rows = rows[:, : self.dimensions]
        written = STORED[self.stored](rows)
        failed = {place: self.failures[text] for place, text in enumerate(texts) if text in self.failures}
        return Answers(np.where(np.isfinite(rows), written, np.nan), failed)


def rows_of(checkpoint: Checkpoint) -> Callable[[Sequence[str]], np.ndarray]:
    """Encodes with a loaded checkpoint; NaN for texts that it cannot encode."""
    encoder = Encoder(checkpoint)

    def rows(texts: Sequence[str]) -> np.ndarray:
        try:
            return encoder.encode_texts(texts)
        except EmbauditError:
            found = np.full((len(texts), checkpoint.dimension), np.nan)
            for place, text in enumerate(texts):
                try:
                    found[place] = encoder.encode_texts([text])[0]
                except EmbauditError:
                    continue
            return found

    return rows


def rows_of_openvino(
    resolved: ResolvedCheckpoint, *, trust_remote_code: bool = False
) -> Callable[[Sequence[str]], np.ndarray]:
    """Encodes with sentence-transformers in OpenVINO, on the processor.

    Raises:
        UsageError: if it is not installed.
        CheckpointError: if it cannot run the checkpoint.
    """
    from importlib.util import find_spec

    # sentence-transformers says so by a plain Exception, as it says everything else.
    if find_spec("optimum") is None:
        raise UsageError(
            "The backend openvino is not installed.",
            next_step='pip install "sentence-transformers[openvino]", or leave --with-backend out.',
        )
    from sentence_transformers import SentenceTransformer

    try:
        model: Any = SentenceTransformer(
            str(resolved.folder), backend="openvino", device="cpu", trust_remote_code=trust_remote_code
        )
    except Exception as error:  # exporters and run times raise anything
        raise CheckpointError(f"{resolved.ref} does not run in openvino: {one_line(error)}") from error
    return lambda texts: np.asarray(model.encode(list(texts), show_progress_bar=False), dtype=np.float64)
