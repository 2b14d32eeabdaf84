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


def duration(seconds: float) -> str:
    """``48 s``, ``12 min``, ``2.3 h``, ``4.1 days``."""
    for unit, name, form in ((86_400, "days", ".1f"), (3_600, "h", ".1f"), (60, "min", ".0f")):
        if seconds >= 2 * unit or (unit == 3_600 and seconds >= unit):
            return f"{seconds / unit:{form}} {name}"
    return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
