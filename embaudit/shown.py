"""Untrusted text (names, tokens, reasons) with invisible characters escaped.

Vocabularies, folder names and model cards may contain escape sequences, newlines or direction overrides, which a
terminal, page or table cell would interpret.
"""

from __future__ import annotations


def visible(text: object) -> str:
    """Control and other unprintable characters as Python escapes."""
    return "".join(character if character.isprintable() else ascii(character)[1:-1] for character in str(text))


# Of a text that is named in a sentence or a cell.
NAMED = 40


def cut(text: str, most: int = NAMED) -> str:
    """The first characters of a text; an ellipsis stands for the rest."""
    return text if len(text) <= most else f"{text[:most]}…"


def quoted(text: str) -> str:
    """The beginning of a text as Python writes it, so that its white space is seen."""
    return repr(cut(text))


def visible_lines(text: object) -> str:
    """The same for text of several lines."""
    return "\n".join(visible(line) for line in str(text).split("\n"))
