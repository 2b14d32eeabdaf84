"""A checkpoint as an embedding function: its inside can be looked at, and a text's vector depends on nothing else.

A checkpoint in another backend: ONNX files by onnxruntime, OpenVINO by sentence-transformers, on the processor.

An ONNX file is named itself, or lies in a checkpoint's folder or on the hub.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any, Literal

import numpy as np

from embaudit.checkpoint import (
    Checkpoint,
    CheckpointRef,
    Encoder,
    LoadOptions,
    ResolvedCheckpoint,
    TextKind,
    load_checkpoint,
    resolve,
)
from embaudit.checkpoint.files import exports_of, format_of
from embaudit.checkpoint.onnx_encoder import OnnxEncoder, OnnxModel
from embaudit.checkpoint.onnx_file import read_onnx
from embaudit.checkpoint.settings import read_settings
from embaudit.checkpoint.tokenizer import NO_LIMIT
from embaudit.checkpoint.weightless import load_without_weights
from embaudit.embedders.function import IN_ORDER, Answers, EmbeddingFunction, first_alike, similarity_named
from embaudit.steps.workers import settle
from embaudit.system.hub import Repository
from embaudit.words.errors import CheckpointError, EmbauditError, MeasureError, UsageError, one_line


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


# What servers read where there are several.
FIRST = ("model.onnx", "onnx/model.onnx")
NAMED_AT_MOST = 6


def onnx_encoder(name: str, options: LoadOptions) -> OnnxEncoder:
    """Encodes with an ONNX file as the folder around it declares; its weights are neither needed nor read.

    Args:
        name: a file, or a checkpoint that has one.

    Raises:
        UsageError: if there is none, none of several is the usual one, or onnxruntime is not installed.
        CheckpointError: if it is broken, cannot be run, or the folder lacks config or tokenizer.
    """
    resolved, file = _found(name, options)
    read = read_onnx(file, resolved.folder)
    return OnnxEncoder(OnnxModel(read), load_without_weights(resolved, options))


def _found(name: str, options: LoadOptions) -> tuple[ResolvedCheckpoint, Path]:
    path = Path(name).expanduser()
    if path.suffix == ".onnx" and path.is_file():
        folder = _folder_of(path.absolute())
        return ResolvedCheckpoint(CheckpointRef("local", str(folder)), folder, None), path.absolute()
    resolved = resolve(name, allow_pickle=options.allow_pickle, trust_remote_code=options.trust_remote_code)
    if resolved.ref.kind == "hub":
        return resolved, _downloaded(resolved)
    names = [export.name for export in exports_of(resolved.folder) if export.format == "ONNX"]
    return resolved, resolved.folder / _chosen(names, str(resolved.ref))


def _folder_of(file: Path) -> Path:
    """The checkpoint's folder: the nearest one that says how texts are read, or the file's own."""
    places = [place for place in file.parents if (place / "modules.json").is_file()][:1]
    places += [place for place in file.parents if (place / "config.json").is_file()][:1]
    return next((place for place in places if len(file.relative_to(place).parts) <= 3), file.parent)


def _downloaded(resolved: ResolvedCheckpoint) -> Path:
    """The file on the hub, and what it has its weights in: neither is fetched with a checkpoint."""
    repository = Repository("model", resolved.ref.name, resolved.revision, "download it, and name its folder.")
    names = repository.info().files
    chosen = _chosen([name for name in names if format_of(name) == "ONNX"], str(resolved.ref))
    beside = [name for name in names if name.startswith((f"{chosen}_data", f"{chosen}.data"))]
    for name in beside:
        repository.file(name)
    return repository.file(chosen)


def _chosen(names: Sequence[str], of: str) -> str:
    usual = [name for name in FIRST if name in names]
    if usual or len(names) == 1:
        return [*usual, *names][0]
    if not names:
        raise UsageError(
            f"{of} has no ONNX file.",
            next_step="Export one (torch.onnx.export), or name it: --with FOLDER/model.onnx --with-backend onnx",
        )
    shown = ", ".join(sorted(names, key=lambda name: PurePosixPath(name).name)[:NAMED_AT_MOST])
    raise UsageError(
        f"{of} has {len(names)} ONNX files, and none is model.onnx: {shown}.",
        next_step=f"Name one: --with {of}/{names[0]} --with-backend onnx",
    )


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
