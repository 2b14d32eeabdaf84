"""Fixtures of stored vectors."""

from tiny_index import tiny_index as tiny_index
