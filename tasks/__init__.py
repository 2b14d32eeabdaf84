"""Prefect tasks: thin modules for each measure. Ids and paths go in, paths of staged files come out."""

from embaudit_tasks.log_lines import make_readable

# Here, because worker processes import nothing else of embaudit before they log.
make_readable()
