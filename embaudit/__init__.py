"""Audit text-embedding checkpoints: sticky tokens, second-order collapse, length collapse."""

from importlib.metadata import version

__version__ = version("embaudit")
