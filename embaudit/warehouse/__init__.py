"""The DuckDB warehouse: brief exclusive writes, read-only access otherwise.

``publish`` loads staged files in one transaction, ``query`` reads.
"""
