"""Text from outside (names, tokens, reasons) as a terminal may show it: as text, never as markup or control codes.

A token may be ``[red]``, and rich would obey it; what a terminal itself obeys is ``embaudit.shown``'s part.
"""

from __future__ import annotations

from rich.markup import escape

from embaudit.shown import visible, visible_lines

__all__ = ["as_text", "visible", "visible_lines"]


def as_text(text: object) -> str:
    """Visible, and nothing but text where rich reads markup."""
    return escape(visible(text))
