"""What of an advice is typed: a command, an option, what stands in backquotes."""

from __future__ import annotations

import re

# Beside options, a command's arguments are NAMES, quoted, names-with-hyphens or words with a sign in them: of "embaudit
# why says where", only the first two are typed.
VALUE = r"(?:[A-Z]+\b|'[^']*'|[^\s,;()]*[/.=:][^\s,;()]*[^\s,;.:()]|[a-z]*\d[\w.]*)"
ARGUMENT = rf"(?:--?[\w.=/-]+|[a-z]+-[a-z-]+|{VALUE})"
TYPED = re.compile(
    rf"`[^`]+`|\bembaudit (?:query [a-z-]+|[a-z][a-z-]*)(?: {ARGUMENT})*|"
    rf"(?<![\w-])--[a-z][a-z-]*(?:[ =]{VALUE})?"
)


def pieces(advice: str) -> list[tuple[str, bool]]:
    """Its parts in order, and whether each is typed."""
    found: list[tuple[str, bool]] = []
    end = 0
    for typed in TYPED.finditer(advice):
        found += [(advice[end : typed.start()], False), (typed[0].strip("`"), True)]
        end = typed.end()
    return [(text, is_typed) for text, is_typed in [*found, (advice[end:], False)] if text]
