"""Text from outside in Markdown: token strings, source names and reasons show as they are and format nothing."""

from __future__ import annotations

import re

from embaudit.shown import visible

# Every sign that begins something in Markdown or HTML; a backslash before it makes it a sign again. The at sign, the
# colon and the dot are there because addresses become links of their own accord.
SIGNS = re.compile(r"([\\`*_{}\[\]()#+\-!|~>$^=:.@/])")
ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"}


def plain(text: object) -> str:
    """The text as inline Markdown that reads as the text itself, in a paragraph or a table's cell."""
    escaped = "".join(ENTITIES.get(character, character) for character in visible(text))
    # Semicolons and ampersands of the entities are no signs.
    return SIGNS.sub(r"\\\1", escaped)
