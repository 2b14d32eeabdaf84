"""Files of texts, screened for severe tokens at unusual density."""

from __future__ import annotations

import heapq
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import log10
from pathlib import Path

from embaudit.corpora.load import SAMPLE_FOLDER
from embaudit.errors import CorpusError
from embaudit.screening.count import Encode, counts_of, tokenised
from embaudit.screening.density import MIN_COPIES, OrdinaryRate, is_unusual, log_tail, score
from embaudit.screening.texts import FileRows, stream_texts

# Encyclopedic sentences, passages and reviews, written for this project.
ORDINARY = tuple(SAMPLE_FOLDER / name for name in ("wikipedia.txt", "passages.jsonl", "longdocs.jsonl"))
START = 80
LOG_10 = 2.302585092994046


@dataclass(frozen=True)
class Suspect:
    """A text with an unusual density of severe tokens.

    Attributes:
        row: from 1.
        read: tokens of its own that the checkpoint reads.
        counts: of its severe tokens, by id.
        log_tail: natural logarithm of the tail, not corrected.
        start: its first characters.
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
        """Common logarithm of the tail times the number of texts; at most 0."""
        return min(self.log_tail / LOG_10 + log10(texts), 0.0)


@dataclass
class ScreenedFile:
    """One file: its rows, and its tokens.

    Attributes:
        tokens: that the checkpoint reads.
        without_tokens: texts of which the tokenizer leaves nothing.
        cut: texts that are longer than the checkpoint reads.
        with_severe: texts that hold a severe token.
        counts: of severe tokens, by id.
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
    """What screening found.

    Attributes:
        texts: with at least one token.
        flagged: so many of them.
        suspects: the most unusual of the flagged ones, the densest first.
    """

    files: Sequence[ScreenedFile]
    ordinary: OrdinaryRate
    texts: int
    flagged: int
    suspects: Sequence[Suspect]


@dataclass(frozen=True)
class Screen:
    """What texts are screened with.

    Attributes:
        losses: of the severe tokens, by id.
        limit: tokens of its own that the checkpoint reads of a text.
        min_score: of flagged texts.
        shown: so many suspects are kept.
    """

    encode: Encode
    losses: Mapping[int, float]
    limit: int
    min_score: float
    shown: int

    def screen(self, paths: Iterable[Path], ordinary: OrdinaryRate) -> Outcome:
        """Screen files, one text after the other; in memory are two batches, the suspects that are shown, and eight
        bytes for every text that may be flagged: how unusual it must be is known when all texts are.

        Raises:
            CorpusError: if a file cannot be read, or no text is left.
        """
        rate = ordinary.most
        files: list[ScreenedFile] = []
        tails = array("d")
        # The least unusual first.
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
                next_step="Give one text a line (.txt), or rows with a field 'text'.",
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
        """How many severe tokens ordinary texts have.

        Raises:
            CorpusError: if a file cannot be read, or no text is left.
        """
        files = [ScreenedFile(str(path)) for path in paths]
        for file in files:
            for _ in self._with_severe(file, Path(file.name)):
                pass
        tokens = sum(file.tokens for file in files)
        if not tokens:
            raise CorpusError(
                "The ordinary texts hold no token: " + "; ".join(f"{file.name}: {file.rows}" for file in files) + ".",
                next_step="Give one text a line (.txt), or rows with a field 'text'.",
            )
        return OrdinaryRate(tokens, sum(file.counts.total() for file in files))

    def _suspects(self, file: ScreenedFile, path: Path, rate: float) -> Iterator[Suspect]:
        """Texts that are dense enough to be flagged, if they are unusual enough."""
        for row, text, read, counts in self._with_severe(file, path):
            severe = counts.total()
            density = score(counts, self.losses, read)
            if severe >= MIN_COPIES and density >= self.min_score:
                yield Suspect(file.name, row, read, counts, density, log_tail(severe, read, rate), text[:START])

    def _with_severe(self, file: ScreenedFile, path: Path) -> Iterator[tuple[int, str, int, Counter[int]]]:
        """(row, text, tokens read, severe tokens) of the texts that hold any; all texts are counted."""
        # Of sets ``isdisjoint`` is by far the fastest answer for the many texts without a severe token.
        severe = frozenset(self.losses)
        limit = self.limit
        for row, text, whole in tokenised(stream_texts(path, file.rows), self.encode):
            ids = whole
            if len(whole) > limit:
                file.cut += 1
                ids = whole[:limit]
            elif not whole:
                file.without_tokens += 1
            file.tokens += len(ids)
            if not severe.isdisjoint(ids):
                counts = counts_of(ids, severe)
                file.with_severe += 1
                file.counts.update(counts)
                yield row, text, len(ids), counts
