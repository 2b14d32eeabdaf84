"""How often do the 95 % intervals hold what they should, and are they as wide as draws differ?

Texts, pairs or queries are encoded once (``texts``, ``pairs``). Many draws of them are made, of which each is what one
audit would read, and the measures' own functions give each draw's figures with their intervals (``draws``).
"""

from benchmarks.coverage.command import main, run

__all__ = ["main", "run"]
