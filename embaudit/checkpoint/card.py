"""Reads the front matter of a checkpoint's model card."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from embaudit.system.small_files import card_text


def front_matter(card: Path) -> Any:
    """Its fields, by ``get``; empty if there is no card.

    Raises:
        Exception: of several classes, if its YAML is broken.
    """
    if not card.is_file():
        return {}
    from huggingface_hub import ModelCard

    return ModelCard(card_text(card), ignore_metadata_errors=True).data
