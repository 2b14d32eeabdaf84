"""Settings of the languages measure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, get_args

from pydantic import Field

from embaudit.measures.measure import MeasureSettings
from embaudit.measures.workload import Readable, Work

# The columns of sentences.tsv beside English.
Language = Literal["de", "fr", "es", "pt", "pl", "ru", "zh", "ja", "ar", "hi", "ko", "tr"]
SENTENCES = 40
# Mean length over all languages, of an English vocabulary: 11 tokens of English, 32 of Russian, letter by letter.
TOKENS = 21


class LanguagesSettings(MeasureSettings):
    """Settings of the languages measure."""

    languages: tuple[Language, ...] = Field(
        default=get_args(Language), min_length=1, description="languages that are compared with English"
    )

    def work(self, readable: Readable) -> Iterator[Work]:
        yield Work((1 + len(self.languages)) * SENTENCES, min(TOKENS, readable.max_length))
