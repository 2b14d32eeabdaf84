"""Whether a checkpoint says that its first dimensions can be served alone (Matryoshka)."""

from __future__ import annotations

from pathlib import Path

from embaudit.checkpoint.files import read_object
from embaudit.system.small_files import card_text

# Keys of config.json that servers read (vLLM).
KEYS = ("matryoshka_dimensions", "is_matryoshka")
WORD = "matryoshka"


def declared_cut(folder: Path, truncate_dim: int | None) -> str | None:
    """Where it says so, in words; None if it does not.

    Args:
        truncate_dim: how many dimensions it serves by its own settings.
    """
    if truncate_dim is not None:
        return f"truncate_dim is {truncate_dim} in config_sentence_transformers.json"
    config = folder / "config.json"
    content = read_object(config) if config.is_file() else {}
    for key in KEYS:
        if content.get(key):
            return f"{key} in config.json"
    card = folder / "README.md"
    if card.is_file() and WORD in card_text(card).lower():
        return "its model card mentions Matryoshka"
    return None
