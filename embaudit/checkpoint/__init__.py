"""From a reference that a person types to an encoder that the measures call.

``reference`` finds the folder, ``identity`` hashes its content, ``modules`` reads the declared
sentence-transformers pipeline, ``load`` puts the model on a device, ``encoder`` runs it in batches.
"""

from embaudit.checkpoint.encoder import Encoder
from embaudit.checkpoint.identity import CheckpointIdentity, identify
from embaudit.checkpoint.load import Checkpoint, LoadOptions, load_checkpoint
from embaudit.checkpoint.reference import CheckpointRef, ResolvedCheckpoint, resolve

__all__ = [
    "Checkpoint",
    "CheckpointIdentity",
    "CheckpointRef",
    "Encoder",
    "LoadOptions",
    "ResolvedCheckpoint",
    "identify",
    "load_checkpoint",
    "resolve",
]
