"""Text from outside (names, tokens, reasons) with nothing in it that a reader cannot see.

Vocabularies, folder names and model cards may hold an escape sequence, a newline, or a sign that turns the text after
it around. A terminal, a page and a table cell would obey.
"""

from __future__ import annotations


def visible(text: object) -> str:
    """Control and other unprintable characters as Python escapes."""
    return "".join(character if character.isprintable() else ascii(character)[1:-1] for character in str(text))


def visible_lines(text: object) -> str:
    """The same for a text of several lines."""
    return "\n".join(visible(line) for line in str(text).split("\n"))
