"""Reads the export of an index: Parquet, Feather, JSON lines, .npy with texts, DuckDB and PostgreSQL, in batches.

``opened`` tells formats apart, ``columns`` finds the vectors, texts and ids of a table, and ``decode`` turns a batch of
Arrow into the arrays that are measured. Nothing is ever in memory as a whole.
"""
