"""``embaudit.parity``: compare a checkpoint with what serves it, from Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from embaudit.api.check import given_material
from embaudit.checkpoint import load_checkpoint
from embaudit.endpoint.recognise import is_address, open_endpoint
from embaudit.masking import without_credentials
from embaudit.measures.parity.parity import ParityReport, compare_with
from embaudit.measures.quality.material import Material
from embaudit.request import AuditRequest


def parity(
    checkpoint: str | Path,
    other: str | Path,
    *,
    api: str | None = None,
    model: str | None = None,
    dtype: str = "float32",
    pairs: Sequence[str | Path] = (),
    data: Sequence[str | Path] = (),
    with_explanation: bool = True,
    **settings: Any,
) -> ParityReport:
    """Whether a checkpoint and what serves it are the same function, and if not, why.

    Texts are sent to the endpoint, wherever it is.

    Args:
        checkpoint: packaged:NAME, a local folder or owner/name@revision on the hub.
        other: an endpoint's address, or another checkpoint.
        api: openai, tei or ollama; by default, recognised.
        model: its name at the endpoint, if that serves several.
        dtype: the precision of another checkpoint.
        pairs: files of scored pairs, a data set each; by default, the embedded sample.
        data: folders of judged queries in BEIR's layout; by default, the embedded sample.
        settings: how the checkpoint is loaded: device, pooling, max_length, prompt, allow_pickle, trust_remote_code.

    Raises:
        EmbauditError: if the checkpoint cannot be loaded, or the endpoint does not answer.
    """
    material = given_material([Path(path) for path in pairs], [Path(path) for path in data])
    request = AuditRequest.of(checkpoint=str(checkpoint), **settings)
    return run(request, str(other), material, api=api, model=model, dtype=dtype, with_explanation=with_explanation)


def run(
    request: AuditRequest,
    other: str,
    material: Material,
    *,
    api: str | None = None,
    model: str | None = None,
    dtype: str = "float32",
    with_explanation: bool = True,
    progress: Callable[[str], None] = lambda what: None,
) -> ParityReport:
    """Compare what a request names with another function."""
    options = replace(request.load_options, dtype="float32")
    if not is_address(other):
        checkpoint = load_checkpoint(request.checkpoint, options)
        second = load_checkpoint(other, replace(options, dtype=dtype))
        return compare_with(checkpoint, second, other, material, with_explanation=with_explanation, progress=progress)
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
