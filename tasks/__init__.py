"""Prefect tasks: one thin module a measure. Ids and paths go in, paths of staged files come out."""
