"""An index of the tiny checkpoint, as tests of stored vectors have it."""

from stored.conftest import tiny_index as tiny_index
