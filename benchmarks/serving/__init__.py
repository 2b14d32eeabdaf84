"""Serving a checkpoint well, and in every way in which servers are reported to get it wrong: what ``parity`` says.

``server`` answers HTTP requests, ``faults`` are what it does wrong, ``harmless`` what is right though different, and
``command`` holds what ``embaudit parity`` says of each, ``verifying`` what a passport says.
"""

from benchmarks.serving.command import main, run

__all__ = ["main", "run"]
