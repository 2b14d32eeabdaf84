"""The user's own sentence pairs (``--pairs FILE``): all kept in order, including repeats.

A corpus drops duplicates because it is a pool to draw from; a chosen list is itself the sample, and the pairs published
with the sticky-token paper contain repeats.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from embaudit.corpora.catalog import CORPORA
from embaudit.corpora.fields import pairs_of
from embaudit.corpora.openers import local_file
from embaudit.corpora.records import read_records
from embaudit.corpora.tally import Flaw
from embaudit.words.errors import CorpusError


@dataclass(frozen=True)
class ChosenPairs:
    """The pairs of a file, and a hash of everything a measure uses of them."""

    pairs: tuple[tuple[str, str], ...]
    content: str


def read_chosen_pairs(path: Path) -> ChosenPairs:
    """Read csv, tsv, json, jsonl or Parquet with sentence1 and sentence2 (or s1,s2 without a header).

    Raises:
        CorpusError: if the file cannot be read, is empty, or has an invalid row: nothing is dropped silently.
    """
    pairs: list[tuple[str, str]] = []
    for row, record in enumerate(read_records(local_file(path.expanduser()), "pairs"), start=1):
        found = [record] if isinstance(record, Flaw) else list(pairs_of(record, CORPORA["sts"]))
        for pair in found:
            if isinstance(pair, Flaw) or not (pair.first and pair.second):
                reason = pair.reason if isinstance(pair, Flaw) and pair.reason else "a side is blank"
                raise CorpusError(
                    f"Row {row} of {path} is not a sentence pair: {reason}.",
                    next_step="Give every row a sentence1 and a sentence2.",
                )
            pairs.append((pair.first, pair.second))
    if not pairs:
        raise CorpusError(f"{path} contains no pairs.", next_step="Give rows with sentence1 and sentence2.")
    content = hashlib.sha256(json.dumps(pairs, ensure_ascii=False).encode()).hexdigest()[:16]
    return ChosenPairs(tuple(pairs), content)
