"""Turns a checkpoint reference into an encoder for the measures.

``reference`` finds the folder, ``files`` selects its relevant files, ``identity`` hashes them, ``modules`` reads the
declared sentence-transformers pipeline and ``prompts`` the prompts; ``model``, ``tokenizer`` and ``pooling`` build the
parts, ``load`` puts them together on a device, ``encoder`` runs them in batches, ``precision`` measures which dtype is
faster, and ``describe`` gives the warehouse row.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from embaudit.checkpoint.encoder import Encoder as Encoder
    from embaudit.checkpoint.load import Checkpoint as Checkpoint
    from embaudit.checkpoint.load import LoadOptions as LoadOptions
    from embaudit.checkpoint.load import load_checkpoint as load_checkpoint
    from embaudit.checkpoint.prompts import AskedPrompts as AskedPrompts
    from embaudit.checkpoint.prompts import TextKind as TextKind
    from embaudit.checkpoint.reference import CheckpointIdentity as CheckpointIdentity
    from embaudit.checkpoint.reference import CheckpointRef as CheckpointRef
    from embaudit.checkpoint.reference import ResolvedCheckpoint as ResolvedCheckpoint
    from embaudit.checkpoint.reference import identify as identify
    from embaudit.checkpoint.reference import resolve as resolve

# Imported on first use: a request needs only how a checkpoint is loaded, and every --help shows that.
_PLACES = {
    "AskedPrompts": "prompts",
    "Checkpoint": "load",
    "CheckpointIdentity": "reference",
    "CheckpointRef": "reference",
    "Encoder": "encoder",
    "LoadOptions": "load",
    "ResolvedCheckpoint": "reference",
    "TextKind": "prompts",
    "identify": "reference",
    "load_checkpoint": "load",
    "resolve": "reference",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"embaudit.checkpoint.{_PLACES[name]}"), name)
