"""Untrusted text (names, tokens, reasons) for a terminal: as plain text, never markup or control codes.

Rich would interpret a token such as ``[red]``; ``embaudit.words.sentences`` handles what the terminal itself
interprets.
"""

from __future__ import annotations

from rich.markup import escape

from embaudit.words.sentences import visible, visible_lines

__all__ = ["as_text", "visible", "visible_lines"]


def as_text(text: object) -> str:
    """The text with invisible characters and rich markup escaped."""
    return escape(visible(text))
