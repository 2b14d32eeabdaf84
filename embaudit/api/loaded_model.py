"""A model in memory as a checkpoint: a folder, since whatever is audited is known by the content of its files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from embaudit.checkpoint import resolve
from embaudit.checkpoint.load import describe
from embaudit.errors import StorageError, UsageError
from embaudit.files import move_into_place, temporary_sibling
from embaudit.request import AuditRequest
from embaudit.settings import Settings


def saved(model: Any, request: AuditRequest) -> Path:
    """Write a loaded ``SentenceTransformer`` to ``EMBAUDIT_HOME/models/CHECKPOINT_ID``, unless it lies there.

    It stays there, as staged files do: ``embaudit token`` and a repeated audit find it. It may be deleted whenever no
    audit reads it; the same model is written to the same place again.

    Args:
        request: how it will be loaded; another pooling is another checkpoint.

    Raises:
        UsageError: if the model cannot write itself down as a folder of sentence-transformers.
        CheckpointError: if what it writes is no checkpoint that can be audited.
        StorageError: if the folder cannot be written.
    """
    if not (hasattr(model, "save_pretrained") and hasattr(model, "encode")):
        raise UsageError(
            f"A checkpoint is a name, a folder or a loaded SentenceTransformer, not a {type(model).__name__}.",
            next_step="Save the model as a folder of sentence-transformers and audit that.",
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
            kept="Staged and published results are as they were.",
            next_step="Make room, or name another folder in EMBAUDIT_HOME.",
        ) from error
    return place
