"""Damage and errors of the system as one sentence that names the place."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from embaudit.corpora.openers import os_failure
from embaudit.corpora.tables import report_damage
from embaudit.words.errors import CorpusError

FETCH = "Export it again, or fetch it again."


@contextmanager
def reported(shown: str) -> Iterator[None]:
    """Errors of a reader as a CorpusError that names the file."""
    try:
        with report_damage(shown, FETCH):
            yield
    except FileNotFoundError as error:
        raise CorpusError(f"There is no file {shown}.", next_step="Check the path.") from error
    except OSError as error:
        raise os_failure(shown, error) from error
