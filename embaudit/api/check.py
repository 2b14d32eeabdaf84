"""``embaudit.check``: check a checkpoint from Python, in the middle of a training run too."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from embaudit.checking.check import CheckReport
from embaudit.checking.check import check as check_folder
from embaudit.corpora.judged import load_judged
from embaudit.corpora.load import load_corpus
from embaudit.errors import UsageError
from embaudit.measures.quality.material import FEW, Material, MaterialLimits, sample_material, user_material
from embaudit.request import AuditRequest

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


def check(
    checkpoint: str | Path | SentenceTransformer,
    *,
    base: str | Path | SentenceTransformer | None = None,
    pairs: Sequence[str | Path] = (),
    data: Sequence[str | Path] = (),
    **settings: Any,
) -> CheckReport:
    """Whether a checkpoint may be served: a verdict, findings and figures, in seconds and without a server.

    Args:
        checkpoint: packaged:NAME, a local folder, owner/name@revision on the hub, or a loaded ``SentenceTransformer``,
            which is saved to a temporary folder.
        base: what the checkpoint was tuned from, or its previous revision: what changed, what it gained and lost.
        pairs: files of scored pairs, a data set each; by default, the embedded sample.
        data: folders of judged queries in BEIR's layout; by default, the embedded sample.
        settings: how it is loaded: device, pooling, max_length, prompt, query_prompt, document_prompt, allow_pickle,
            trust_remote_code.

    Raises:
        EmbauditError: if a setting or a file of texts is wrong. That a checkpoint cannot be loaded is a result.
    """
    material = given_material([Path(path) for path in pairs], [Path(path) for path in data])
    with ExitStack() as stack:
        place, beside = _folder(checkpoint, stack), None if base is None else _folder(base, stack)
        found = run(AuditRequest.of(checkpoint=place, **settings), material, beside)
    return replace(
        found,
        checkpoint=_shown(checkpoint),
        base=None if base is None else _shown(base),
    )


def _folder(checkpoint: str | Path | SentenceTransformer, stack: ExitStack) -> str:
    """A reference that can be loaded: the temporary folder that a model in memory is saved to."""
    if isinstance(checkpoint, str | Path):
        return str(checkpoint)
    if not (hasattr(checkpoint, "save_pretrained") and hasattr(checkpoint, "encode")):
        raise UsageError(
            f"A checkpoint is a name, a folder or a loaded SentenceTransformer, not a {type(checkpoint).__name__}.",
            next_step="Save the model in sentence-transformers format and check that folder.",
        )
    folder = stack.enter_context(TemporaryDirectory())
    checkpoint.save_pretrained(folder, create_model_card=False)
    return folder


def _shown(checkpoint: str | Path | SentenceTransformer) -> str:
    return str(checkpoint) if isinstance(checkpoint, str | Path) else "the model in memory"


def given_material(pairs: Sequence[Path], data: Sequence[Path], limits: MaterialLimits = FEW) -> Material:
    """The user's texts; the embedded sample's for what is not given.

    Raises:
        CorpusError: if a file cannot be read.
    """
    sample = sample_material()
    if not pairs and not data:
        return sample
    given = user_material(
        [load_corpus("sts", str(path)) for path in pairs], [load_judged(str(folder)) for folder in data], limits
    )
    return replace(
        given,
        pairs=given.pairs if pairs else sample.pairs,
        collections=given.collections if data else sample.collections,
    )


def run(request: AuditRequest, material: Material, base: str | None = None) -> CheckReport:
    """Check what a request names, against a base if there is one."""
    return check_folder(request.checkpoint, request.load_options, material, base)
