"""How people train, serve, cache and call embedders: what goes wrong, each beside a twin that is right.

``networks`` writes small checkpoints, ``clients``, ``servers`` and ``folders`` are the situations, and ``command`` asks
``check``, ``parity`` and ``verify`` about each and about its healthy twin.
"""

from benchmarks.situations.command import main, run

__all__ = ["main", "run"]
