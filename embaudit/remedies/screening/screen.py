"""Screens files of texts for unusual densities of severe tokens."""

from __future__ import annotations

import heapq
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import log10
from pathlib import Path

from embaudit.checkpoint.tokenizer import truncated
from embaudit.corpora.catalog import CORPORA
from embaudit.corpora.draw import BLANK, Flaw
from embaudit.corpora.fields import text_of
from embaudit.corpora.load import SAMPLE_FOLDER
from embaudit.corpora.openers import local_file
from embaudit.corpora.records import read_records
from embaudit.remedies.screening.density import (
    MIN_COPIES,
    Encode,
    OrdinaryRate,
    counts_of,
    is_unusual,
    log_tail,
    score,
    tokenised,
)
from embaudit.words.errors import CorpusError

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


# Encyclopedic sentences, passages and reviews, written for this project.
ORDINARY = tuple(SAMPLE_FOLDER / name for name in ("wikipedia.txt", "passages.jsonl", "longdocs.jsonl"))
START = 80
LOG_10 = 2.302585092994046


@dataclass(frozen=True)
class Suspect:
    """A text with an unusual density of severe tokens.

    Attributes:
        row: row number, from 1.
        read: tokens that the checkpoint reads, without special tokens.
        counts: severe tokens, by id.
        log_tail: natural logarithm of the tail, uncorrected.
        start: first characters of the text.
    """

    file: str
    row: int
    read: int
    counts: Mapping[int, int]
    score: float
    log_tail: float
    start: str

    @property
    def severe(self) -> int:
        return sum(self.counts.values())

    def log10_corrected(self, texts: int) -> float:
        """log10 of the tail times the number of texts; at most 0."""
        return min(self.log_tail / LOG_10 + log10(texts), 0.0)


@dataclass
class ScreenedFile:
    """Counts of one file.

    Attributes:
        tokens: tokens that the checkpoint reads.
        without_tokens: texts with no token after tokenisation.
        cut: texts longer than the checkpoint's length limit.
        with_severe: texts with a severe token.
        counts: severe tokens, by id.
    """

    name: str
    rows: FileRows = field(default_factory=FileRows)
    tokens: int = 0
    without_tokens: int = 0
    cut: int = 0
    with_severe: int = 0
    counts: Counter[int] = field(default_factory=Counter)


@dataclass(frozen=True)
class Outcome:
    """Result of a screening.

    Attributes:
        texts: number of texts with at least one token.
        flagged: number of flagged texts.
        suspects: the most unusual flagged texts, densest first.
    """

    files: Sequence[ScreenedFile]
    ordinary: OrdinaryRate
    texts: int
    flagged: int
    suspects: Sequence[Suspect]


@dataclass(frozen=True)
class Screen:
    """Configuration of a screening.

    Attributes:
        losses: losses of the severe tokens, by id.
        limit: tokens per text that the checkpoint reads, without special tokens.
        min_score: lowest score of flagged texts.
        shown: number of suspects to keep.
        side: where longer texts are truncated.
    """

    encode: Encode
    losses: Mapping[int, float]
    limit: int
    min_score: float
    shown: int
    side: str = "right"

    def screen(self, paths: Iterable[Path], ordinary: OrdinaryRate) -> Outcome:
        """Screen files as a stream. Memory holds two batches, the suspects to show, and eight bytes for every text
        that may be flagged: the threshold depends on the final number of texts.

        Raises:
            CorpusError: if a file cannot be read, or has no text.
        """
        rate = ordinary.most
        files: list[ScreenedFile] = []
        tails = array("d")
        # A heap with the least unusual one first.
        worst: list[tuple[float, int, Suspect]] = []
        for path in paths:
            file = ScreenedFile(str(path))
            files.append(file)
            for suspect in self._suspects(file, path, rate):
                tails.append(suspect.log_tail)
                entry = (-suspect.log_tail, -len(tails), suspect)
                if len(worst) < self.shown:
                    heapq.heappush(worst, entry)
                elif worst:
                    heapq.heappushpop(worst, entry)
        texts = sum(file.rows.texts - file.without_tokens for file in files)
        if not texts:
            raise CorpusError(
                "There is no text to screen: " + "; ".join(f"{file.name}: {file.rows}" for file in files) + ".",
                next_step="Give one text per line (.txt), or rows with a field 'text'.",
            )
        suspects = [suspect for _, _, suspect in worst if is_unusual(suspect.log_tail, texts)]
        return Outcome(
            files,
            ordinary,
            texts,
            sum(is_unusual(tail, texts) for tail in tails),
            sorted(suspects, key=lambda one: (-one.score, one.file, one.row)),
        )

    def ordinary_rate(self, paths: Iterable[Path]) -> OrdinaryRate:
        """The rate of severe tokens in ordinary texts.

        Raises:
            CorpusError: if a file cannot be read, or has no text.
        """
        files = [ScreenedFile(str(path)) for path in paths]
        for file in files:
            for _ in self._with_severe(file, Path(file.name)):
                pass
        tokens = sum(file.tokens for file in files)
        if not tokens:
            raise CorpusError(
                "The ordinary texts contain no token: "
                + "; ".join(f"{file.name}: {file.rows}" for file in files)
                + ".",
                next_step="Give one text per line (.txt), or rows with a field 'text'.",
            )
        return OrdinaryRate(tokens, sum(file.counts.total() for file in files))

    def _suspects(self, file: ScreenedFile, path: Path, rate: float) -> Iterator[Suspect]:
        """Texts dense enough to be flagged if they turn out to be unusual enough."""
        for row, text, read, counts in self._with_severe(file, path):
            severe = counts.total()
            density = score(counts, self.losses, read)
            if severe >= MIN_COPIES and density >= self.min_score:
                yield Suspect(file.name, row, read, counts, density, log_tail(severe, read, rate), text[:START])

    def _with_severe(self, file: ScreenedFile, path: Path) -> Iterator[tuple[int, str, int, Counter[int]]]:
        """(row, text, tokens read, severe tokens) of texts with severe tokens; all texts are counted."""
        # ``isdisjoint`` of a frozenset is by far the fastest test for the many texts without a severe token.
        severe = frozenset(self.losses)
        limit = self.limit
        for row, text, whole in tokenised(stream_texts(path, file.rows), self.encode):
            ids = whole
            if len(whole) > limit:
                file.cut += 1
                ids = truncated(whole, limit, self.side)
            elif not whole:
                file.without_tokens += 1
            file.tokens += len(ids)
            if not severe.isdisjoint(ids):
                counts = counts_of(ids, severe)
                file.with_severe += 1
                file.counts.update(counts)
                yield row, text, len(ids), counts
