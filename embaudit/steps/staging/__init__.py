"""Staged results: immutable Parquet files by content key, on a disk or in a store, and what may be deleted of them."""
