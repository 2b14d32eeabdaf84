"""Turns a checkpoint reference into an encoder for the measures.

``reference`` finds the folder, ``files`` selects its relevant files, ``identity`` hashes them, ``modules`` reads the
declared sentence-transformers pipeline and ``prompts`` the prompts; ``model``, ``tokenizer`` and ``pooling`` build the
parts, ``load`` puts them together on a device, ``encoder`` runs them in batches, ``precision`` measures which dtype is
faster, and ``describe`` gives the warehouse row.
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
