"""Streams the texts of a file, and counts its other rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from embaudit.corpora.catalog import CORPORA
from embaudit.corpora.fields import text_of
from embaudit.corpora.openers import local_file
from embaudit.corpora.records import read_records
from embaudit.corpora.tally import BLANK, Flaw

# A passage is title plus text, as in BEIR.
PASSAGE = CORPORA["msmarco"]


@dataclass
class FileRows:
    """Counts of a file's rows by outcome; ``read`` is the sum of the others."""

    read: int = 0
    texts: int = 0
    blank: int = 0
    broken: int = 0
    undecodable: int = 0
    first_broken: str = ""

    def __str__(self) -> str:
        reason = f" (the first: {self.first_broken})" if self.first_broken else ""
        return (
            f"{self.read:,} rows: {self.texts:,} texts, {self.blank:,} blank, {self.broken:,} broken{reason}, "
            f"{self.undecodable:,} not UTF-8"
        )


def stream_texts(path: Path, counts: FileRows) -> Iterator[tuple[int, str]]:
    """(row, text) of a file, rows numbered from 1. Only the current row is in memory, unless the file is a JSON list.

    Args:
        counts: updated while the file is read.

    Raises:
        CorpusError: if the file cannot be read to its end.
    """
    for record in read_records(local_file(path), "texts"):
        counts.read += 1
        found = record if isinstance(record, Flaw) else text_of(record, PASSAGE)
        if not isinstance(found, Flaw) and found.text:
            counts.texts += 1
            yield counts.read, found.text
            continue
        flaw = found if isinstance(found, Flaw) else BLANK
        setattr(counts, flaw.counted_as, getattr(counts, flaw.counted_as) + 1)
        if flaw.counted_as == "broken" and not counts.first_broken:
            counts.first_broken = f"row {counts.read}: {flaw.reason}"
