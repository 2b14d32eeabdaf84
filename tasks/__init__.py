"""Prefect tasks: thin modules for each measure. Ids and paths go in, paths of staged files come out.

What Prefect logs about runs, as a person reads it: expected failures without a traceback, and ends with a name.

Without secrets, too, which a library's message or the traceback of a bug may repeat.
"""

from __future__ import annotations

import logging
import traceback

from embaudit.system.processors import share_processors
from embaudit.words.errors import EmbauditError
from embaudit.words.masking import masked

LOGGERS = ("prefect.flow_runs", "prefect.task_runs")
FINISHED = "Finished in state "


class ReadableLines(logging.Filter):
    """Rewrites records of a run's own logger, on their way to the console and the server."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Every record passes."""
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, EmbauditError):
            # A traceback is for bugs; this says itself what happened and what to do.
            record.msg, record.args = str(error), ()
            record.exc_info = record.exc_text = None
        elif isinstance(record.msg, str) and record.msg.startswith(FINISHED):
            name = getattr(record, "task_run_name", None) or getattr(record, "flow_run_name", None)
            if name:
                record.msg = f"{str(name).replace('%', '%%') if record.args else name}: {record.msg}"
        said = record.getMessage()
        if (clean := masked(said)) != said:
            record.msg, record.args = clean, ()
        if record.exc_info and record.exc_info[0] is not None:
            # What a formatter finds here, it does not make again.
            record.exc_text = masked("".join(traceback.format_exception(*record.exc_info))).rstrip()
        return True


def make_readable() -> None:
    """Add the filter, once."""
    for name in LOGGERS:
        logger = logging.getLogger(name)
        if not any(isinstance(one, ReadableLines) for one in logger.filters):
            logger.addFilter(ReadableLines())


# Here, because worker processes import nothing else of embaudit before they log, and before torch.
share_processors()
make_readable()
