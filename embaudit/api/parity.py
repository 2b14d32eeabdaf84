"""``embaudit.parity``: compare a checkpoint with what serves it, from Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from embaudit.api.check import given_material
from embaudit.checkpoint import LoadOptions
from embaudit.embedders.as_stored import AsStored, Stored
from embaudit.embedders.backend import Backend, backend_function
from embaudit.embedders.opened import AS_IT_IS, CallOptions, Given, asked_of, is_checkpoint, name_of, open_both
from embaudit.measures.quality.material import Material
from embaudit.questions.audit import AuditRequest
from embaudit.questions.parity.parity import ParityReport, compare_with
from embaudit.words.errors import UsageError


def parity(
    checkpoint: Given,
    other: Given,
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
    """Whether two are the same function, and if not, why: a checkpoint and what serves it, or any two.

    Texts are sent to an endpoint, wherever it is.

    Args:
        checkpoint, other: a checkpoint (packaged:NAME, a local folder or owner/name@revision on the hub), an
            endpoint's address, a Python object or its name (docs/functions.md), or, with the backend onnx, an ONNX
            file. A difference is explained from the side that is a checkpoint.
        api: openai, tei, ollama, azure, cohere, voyage, jina or gemini; by default, recognised.
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
    request = AuditRequest.of(checkpoint=name_of(checkpoint), **settings)
    return run(
        request,
        other,
        material,
        first=checkpoint,
        asked=asked_of((checkpoint, other), api=api, model=model),
        way=OtherWay(dtype, backend, stored, dimensions),
        with_explanation=with_explanation,
    )


@dataclass(frozen=True)
class OtherWay:
    """How another checkpoint is run, and how the other's vectors are stored."""

    dtype: str = "float32"
    backend: Backend = "torch"
    stored: Stored = "as given"
    dimensions: int | None = None


def run(
    request: AuditRequest,
    other: Given,
    material: Material,
    *,
    first: Given | None = None,
    asked: Sequence[CallOptions] = (AS_IT_IS, AS_IT_IS),
    way: OtherWay | None = None,
    with_explanation: bool = True,
    progress: Callable[[str], None] = lambda what: None,
) -> ParityReport:
    """Compare what a request names with another function.

    Args:
        first: in place of what the request names, a function that is there already.
        asked: how each of the two is asked, if it is no checkpoint.
    """
    way = way or OtherWay()
    options = replace(request.load_options, dtype="float32")
    own = request.checkpoint if first is None else first
    if not is_checkpoint(other) and (way.dtype != "float32" or way.backend != "torch"):
        raise UsageError(
            "A precision and a backend are those of another checkpoint: an endpoint and a Python object are asked as "
            "they are.",
            next_step="Leave them out.",
        )
    # Another checkpoint is read as it declares.
    declared = LoadOptions(
        device=options.device,
        dtype=way.dtype,
        allow_pickle=options.allow_pickle,
        trust_remote_code=options.trust_remote_code,
    )
    if way.backend != "torch":
        other = backend_function(str(other), way.backend, declared)
    known, second = open_both((own, other), (options, declared), asked)
    if way.stored != "as given" or way.dimensions is not None:
        second = AsStored(second, way.stored, way.dimensions)
    with known, second:
        return compare_with(known, second, material, with_explanation=with_explanation, progress=progress)
