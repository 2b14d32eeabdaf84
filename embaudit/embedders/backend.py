"""A checkpoint in another backend: ONNX files by onnxruntime, OpenVINO by sentence-transformers, on the processor."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from embaudit.embedders.function import Answers, EmbeddingFunction
from embaudit.words.errors import CheckpointError, UsageError, one_line

if TYPE_CHECKING:
    from embaudit.checkpoint import LoadOptions, TextKind

Backend = Literal["torch", "onnx", "openvino"]
Rows = Callable[[Sequence[str]], np.ndarray]


class BackendFunction(EmbeddingFunction):
    """What a backend gives.

    Args:
        rows: (n, D) vectors of texts; NaN where there is none.
        failures: why a text that was asked for has none, by text; as far as it is known.
    """

    kind = "backend"
    may_depend_on_asking = False

    def __init__(self, name: str, backend: Backend, rows: Rows, failures: Mapping[str, str]) -> None:
        self.name, self.interface, self._rows, self._failures = name, backend, rows, failures

    def encode(
        self, texts: Sequence[str], role: TextKind = "text", *, most: int | None = None, at_once: int = 1
    ) -> Answers:
        rows = self._rows(list(texts))
        self.dimension = self.dimension or rows.shape[1] or None
        return Answers(
            rows, {place: self._failures[text] for place, text in enumerate(texts) if text in self._failures}
        )


def backend_function(name: str, backend: Backend, options: LoadOptions) -> EmbeddingFunction:
    """A checkpoint, or an ONNX file, in another backend; read as it declares.

    Raises:
        UsageError: if the backend is not installed, or it is unclear which file is meant.
        CheckpointError: if it cannot run the checkpoint.
    """
    if backend == "onnx":
        from embaudit.embedders.onnx import onnx_encoder

        encoder = onnx_encoder(name, options)
        return BackendFunction(name, backend, encoder.rows, encoder.failures)
    return BackendFunction(name, backend, _rows_of_openvino(name, options), {})


def _rows_of_openvino(name: str, options: LoadOptions) -> Rows:
    from importlib.util import find_spec

    from embaudit.checkpoint import resolve

    resolved = resolve(name, allow_pickle=options.allow_pickle, trust_remote_code=options.trust_remote_code)
    # sentence-transformers says so by a plain Exception, as it says everything else.
    if find_spec("optimum") is None:
        raise UsageError(
            "The backend openvino is not installed.",
            next_step='pip install "sentence-transformers[openvino]", or leave --with-backend out.',
        )
    from sentence_transformers import SentenceTransformer

    try:
        model: Any = SentenceTransformer(
            str(resolved.folder), backend="openvino", device="cpu", trust_remote_code=options.trust_remote_code
        )
    except Exception as error:  # exporters and run times raise anything
        raise CheckpointError(
            f"{resolved.ref} does not run in openvino: {one_line(error)}",
            next_step="Export it again, or run it without that backend.",
        ) from error
    return lambda texts: np.asarray(model.encode(list(texts), show_progress_bar=False), dtype=np.float64)
