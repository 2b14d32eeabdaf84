"""Untrusted text (names, tokens, reasons) with invisible characters escaped.

Vocabularies, folder names and model cards may contain escape sequences, newlines or direction overrides, which a
terminal, page or table cell would interpret.
"""

from __future__ import annotations


def visible(text: object) -> str:
    """Control and other unprintable characters as Python escapes."""
    return "".join(character if character.isprintable() else ascii(character)[1:-1] for character in str(text))


def visible_lines(text: object) -> str:
    """The same for text of several lines."""
    return "\n".join(visible(line) for line in str(text).split("\n"))
