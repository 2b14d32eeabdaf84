"""Prefect tasks: thin modules for each measure. Ids and paths go in, paths of staged files come out."""

from embaudit.system.processors import share_processors
from embaudit_tasks.log_lines import make_readable

# Here, because worker processes import nothing else of embaudit before they log, and before torch.
share_processors()
make_readable()
