"""An index of the tiny checkpoint, as tests of stored vectors have it, and texts by the packaged one."""

from kept_texts import kept as kept
from searched_stages import searched as searched
from tiny_index import tiny_index as tiny_index
