"""From a reference that a person types to an encoder that the measures call.

``reference`` finds the folder, ``files`` tells which of its files count, ``identity`` hashes them, ``modules`` reads
the declared sentence-transformers pipeline and ``prompts`` what stands before a text; ``model``, ``tokenizer`` and
``pooling`` build its parts, ``load`` puts them together on a device, ``encoder`` runs them in batches, ``precision``
measures which dtype multiplies faster, and ``describe`` tells the warehouse what they are.
"""

from embaudit.checkpoint.encoder import Encoder
from embaudit.checkpoint.identity import CheckpointIdentity, identify
from embaudit.checkpoint.load import Checkpoint, LoadOptions, load_checkpoint
from embaudit.checkpoint.prompts import AskedPrompts, TextKind
from embaudit.checkpoint.reference import CheckpointRef, ResolvedCheckpoint, resolve

__all__ = [
    "AskedPrompts",
    "Checkpoint",
    "CheckpointIdentity",
    "CheckpointRef",
    "Encoder",
    "LoadOptions",
    "ResolvedCheckpoint",
    "TextKind",
    "identify",
    "load_checkpoint",
    "resolve",
]
