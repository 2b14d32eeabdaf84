"""Prefect tasks: thin modules for each measure. Ids and paths go in, paths of staged files come out."""
