"""The DuckDB warehouse: one writer for a moment at a time, everybody else reads.

``stage`` writes immutable Parquet files, ``publish`` brings them in within one transaction, ``query`` reads.
"""
