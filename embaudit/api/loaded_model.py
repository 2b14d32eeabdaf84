"""Saves a model in memory as a checkpoint folder: audits identify checkpoints by the content of their files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from embaudit.checkpoint import load_checkpoint, resolve
from embaudit.checkpoint.agreement import require_same
from embaudit.checkpoint.load import describe
from embaudit.checkpoint.prompts import AS_DECLARED
from embaudit.questions.audit import AuditRequest
from embaudit.system.files import move_into_place, temporary_sibling
from embaudit.system.settings import Settings
from embaudit.words.errors import StorageError, UsageError


def save_model(model: Any, request: AuditRequest) -> Path:
    """Write a loaded ``SentenceTransformer`` to ``EMBAUDIT_HOME/models/CHECKPOINT_ID`` unless it is already there.

    It stays there, like staged files, for ``embaudit token`` and repeated audits. It can be deleted while no audit is
    running; the same model is written to the same place again.

    Args:
        request: how it will be loaded; a different pooling makes a different checkpoint.

    Raises:
        UsageError: if the model cannot be saved in sentence-transformers format.
        CheckpointError: if the saved model cannot be audited, or gives other vectors than the one in memory.
        StorageError: if the folder cannot be written.
    """
    if not (hasattr(model, "save_pretrained") and hasattr(model, "encode")):
        raise UsageError(
            f"A checkpoint is a name, a folder or a loaded SentenceTransformer, not a {type(model).__name__}.",
            next_step="Save the model in sentence-transformers format and audit that folder.",
        )
    models = (Settings().home / "models").expanduser().absolute()
    try:
        with temporary_sibling(models / "model") as folder:
            model.save_pretrained(str(folder), create_model_card=False)
            _, identity = describe(resolve(str(folder)), request.load_options)
            place = models / identity.checkpoint_id
            if not place.is_dir():
                move_into_place(folder, place)
    except OSError as error:
        raise StorageError(
            f"Cannot write the model to {models}: {error}.",
            kept="Staged and published results are unchanged.",
            next_step="Free some space, or set EMBAUDIT_HOME to another folder.",
        ) from error
    options = request.load_options
    if (options.pooling, options.max_length, options.prompts) == (None, None, AS_DECLARED):
        # The audit loads the same: the weights stay in memory for it.
        require_same(model, load_checkpoint(str(place), options))
    return place
