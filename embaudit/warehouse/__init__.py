"""The DuckDB warehouse: brief exclusive writes, read-only access otherwise.

``stage`` writes immutable Parquet files, ``publish`` loads them in one transaction, ``query`` reads.
"""
