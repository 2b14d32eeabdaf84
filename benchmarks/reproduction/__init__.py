"""The papers' tables on all-MiniLM-L6-v2, beside the published figures.

Stages measure (``stages``) with the product's own functions and the profile ``paper``, each into a file of its own;
the figures that were committed (``figures``) and docs/reproduction.md are made from these (``page``).
"""

from benchmarks.reproduction.command import main

__all__ = ["main"]
