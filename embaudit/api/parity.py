"""``embaudit.parity``: compare a checkpoint with what serves it, from Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from embaudit.api.check import given_material
from embaudit.checkpoint import LoadOptions, load_checkpoint, resolve
from embaudit.comparisons.parity.onnx import onnx_encoder
from embaudit.comparisons.parity.other import Backend, OtherCheckpoint, Stored, rows_of, rows_of_openvino
from embaudit.comparisons.parity.parity import ParityReport, compare_with
from embaudit.endpoint.recognise import is_address, open_endpoint
from embaudit.errors import UsageError
from embaudit.masking import without_credentials
from embaudit.measures.quality.material import Material
from embaudit.request import AuditRequest


def parity(
    checkpoint: str | Path,
    other: str | Path,
    *,
    api: str | None = None,
    model: str | None = None,
    dtype: str = "float32",
    backend: Backend = "torch",
    stored: Stored = "as given",
    dimensions: int | None = None,
    pairs: Sequence[str | Path] = (),
    data: Sequence[str | Path] = (),
    with_explanation: bool = True,
    **settings: Any,
) -> ParityReport:
    """Whether a checkpoint and what serves it are the same function, and if not, why.

    Texts are sent to the endpoint, wherever it is.

    Args:
        checkpoint: packaged:NAME, a local folder or owner/name@revision on the hub.
        other: an endpoint's address, another checkpoint, or an ONNX file (with the backend onnx).
        api: openai, tei or ollama; by default, recognised.
        model: its name at the endpoint, if that serves several.
        dtype: the precision of another checkpoint.
        backend: in which it runs: torch, onnx by onnxruntime, or openvino by sentence-transformers.
        stored: how an index stores its vectors: as given, int8 or binary.
        dimensions: how many of the first ones it keeps; None for all.
        pairs: files of scored pairs, a data set each; by default, the embedded sample.
        data: folders of judged queries in BEIR's layout; by default, the embedded sample.
        settings: how the checkpoint is loaded: device, pooling, max_length, prompt, allow_pickle, trust_remote_code.
            Another checkpoint is read as it declares.

    Raises:
        EmbauditError: if the checkpoint cannot be loaded, or the endpoint does not answer.
    """
    material = given_material([Path(path) for path in pairs], [Path(path) for path in data])
    request = AuditRequest.of(checkpoint=str(checkpoint), **settings)
    way = OtherWay(dtype, backend, stored, dimensions)
    return run(request, str(other), material, api=api, model=model, way=way, with_explanation=with_explanation)


@dataclass(frozen=True)
class OtherWay:
    """How another checkpoint is run, and how its vectors are stored."""

    dtype: str = "float32"
    backend: Backend = "torch"
    stored: Stored = "as given"
    dimensions: int | None = None


def run(
    request: AuditRequest,
    other: str,
    material: Material,
    *,
    api: str | None = None,
    model: str | None = None,
    way: OtherWay | None = None,
    with_explanation: bool = True,
    progress: Callable[[str], None] = lambda what: None,
) -> ParityReport:
    """Compare what a request names with another function."""
    options = replace(request.load_options, dtype="float32")
    if not is_address(other):
        checkpoint = load_checkpoint(request.checkpoint, options)
        second = _other(other, way or OtherWay(), options)
        return compare_with(checkpoint, second, other, material, with_explanation=with_explanation, progress=progress)
    if way is not None and way != OtherWay():
        raise UsageError(
            "Precision, backend and stored form are those of another checkpoint: an endpoint is asked as it is.",
            next_step="Leave them out.",
        )
    # Before a model is loaded, which takes longer.
    with open_endpoint(other, api, model) as endpoint:
        checkpoint = load_checkpoint(request.checkpoint, options)
        return compare_with(
            checkpoint,
            endpoint,
            without_credentials(other),
            material,
            with_explanation=with_explanation,
            progress=progress,
        )


def _other(name: str, way: OtherWay, options: LoadOptions) -> OtherCheckpoint:
    """Another checkpoint, read as it declares."""
    trust_remote_code = options.trust_remote_code
    declared = LoadOptions(
        device=options.device,
        dtype=way.dtype,
        allow_pickle=options.allow_pickle,
        trust_remote_code=trust_remote_code,
    )
    if way.backend == "onnx":
        encoder = onnx_encoder(name, declared)
        return OtherCheckpoint(encoder.rows, way.stored, way.dimensions, encoder.failures)
    if way.backend == "openvino":
        resolved = resolve(name, allow_pickle=options.allow_pickle, trust_remote_code=trust_remote_code)
        rows = rows_of_openvino(resolved, trust_remote_code=trust_remote_code)
    else:
        rows = rows_of(load_checkpoint(name, declared))
    return OtherCheckpoint(rows, way.stored, way.dimensions)
