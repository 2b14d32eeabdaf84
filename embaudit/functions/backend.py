"""A checkpoint in another backend, by sentence-transformers, on the processor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from embaudit.errors import CheckpointError, UsageError, one_line
from embaudit.functions.function import Answers, EmbeddingFunction

if TYPE_CHECKING:
    from embaudit.checkpoint import ResolvedCheckpoint, TextKind

Backend = Literal["torch", "onnx", "openvino"]


class BackendFunction(EmbeddingFunction):
    """What sentence-transformers gives in that backend."""

    kind = "backend"
    may_depend_on_asking = False

    def __init__(self, name: str, model: Any) -> None:
        self.name, self._model = name, model

    def encode(
        self, texts: Sequence[str], role: TextKind = "text", *, most: int | None = None, at_once: int = 1
    ) -> Answers:
        return Answers(np.asarray(self._model.encode(list(texts), show_progress_bar=False), dtype=np.float64))


def backend_function(
    resolved: ResolvedCheckpoint, backend: Backend, *, trust_remote_code: bool = False
) -> EmbeddingFunction:
    """A checkpoint in another backend.

    Raises:
        UsageError: if the backend is not installed.
        CheckpointError: if it cannot run the checkpoint.
    """
    from importlib.util import find_spec

    # sentence-transformers says so by a plain Exception, as it says everything else.
    if find_spec("optimum") is None:
        raise UsageError(
            f"The backend {backend} is not installed.",
            next_step=f'pip install "sentence-transformers[{backend}]", or leave --with-backend out.',
        )
    from sentence_transformers import SentenceTransformer

    try:
        model: Any = SentenceTransformer(
            str(resolved.folder), backend=backend, device="cpu", trust_remote_code=trust_remote_code
        )
    except Exception as error:  # exporters and run times raise anything
        raise CheckpointError(f"{resolved.ref} does not run in {backend}: {one_line(error)}") from error
    return BackendFunction(f"{resolved.ref} in {backend}", model)
