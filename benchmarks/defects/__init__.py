"""Does ``embaudit check`` find what is broken, name it right, and leave harmless variants alone?

Copies of the packaged checkpoint are broken by code, one defect each, as people report them (``weights``,
``tokenizer``, ``pipeline``, ``packaging``), or changed in a way that does no harm (``harmless``). What each costs
is measured (``harm``), not assumed, and the check is held against that (``verdicts``).
"""

from benchmarks.defects.command import main, run

__all__ = ["main", "run"]
