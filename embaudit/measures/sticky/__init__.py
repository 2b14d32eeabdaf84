"""Sticky tokens: which tokens, inserted into a text, pull its similarities towards one value?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from embaudit.measures.measure import Asked, Measure, MeasureSettings, Readable, Work, parts_of
from embaudit.measures.sticky.tables import ROWS, STICKY_TOKEN

# Vocabulary entries sampled for the distribution of similarities: eight million pairs.
SAMPLED_TOKENS = 4_096
# Typical length of a vocabulary entry encoded as a text, special tokens included.
TOKEN_LENGTH = 4
# Candidates, and as many controls, that are validated in both precisions before the scan's is trusted with all.
COMPARED_TOKENS = 12


class StickySettings(MeasureSettings):
    """Settings of the sticky-token measure (``docs/methods.md``)."""

    corpora: tuple[Literal["sts"]] = Field(default=("sts",), description="corpus that sentences are sampled from")
    copies: int = Field(default=8, ge=1, description="n, the number of copies of a token to insert")
    sentences: int = Field(
        default=1_100,
        ge=8,
        description="distinct sentences; those not used for draws are anchors, half for search, half for validation",
    )
    draws: int = Field(default=16, ge=4, description="(sentence, operator) draws per token in the search")
    validation_draws: int = Field(default=60, ge=10, description="draws per token in the validation")
    similarity_entries: int | None = Field(
        default=None,
        ge=100,
        description="vocabulary entries, drawn at random, that u is estimated from; if none, it is computed from all",
    )
    scan_encodes: int | None = Field(
        default=None,
        ge=1,
        description="budget of the search; if none, or if it suffices, every token gets all draws",
    )
    scan_dtype: Literal["auto", "float32", "bfloat16", "float16"] = Field(
        default="auto",
        description="precision of the scan, and of the validation if it moves no figure; auto: half precision if "
        "measured to be clearly faster, and float32 if reference is true",
    )
    shortlist_share: float = Field(
        default=0.02, gt=0, le=1, description="size of each protocol's shortlist, as a share of the vocabulary"
    )
    max_shortlist: int | None = Field(default=None, ge=1, description="upper limit on the size of each shortlist")
    controls: int = Field(default=200, ge=10, description="ordinary tokens that candidates are compared with")
    resamples: int = Field(default=1_000, ge=100, description="bootstrap resamples for intervals and p-values")
    dose_tokens: int = Field(default=10, ge=0, description="worst tokens, and as many controls, measured at each dose")
    doses: tuple[int, ...] = Field(
        default=(1, 2, 4, 8, 16), min_length=1, description="numbers of copies on the dose curve"
    )
    dose_draws: int = Field(default=30, ge=10, description="validation draws used for the dose curve")
    shift_tokens: int = Field(
        default=10, ge=0, description="sticky tokens, and as many ordinary ones, in the paper's first experiment"
    )
    shift_pairs: int = Field(default=1_000, ge=10, description="sentence pairs in the paper's first experiment")
    attention_tokens: int = Field(
        default=50, ge=0, description="sticky tokens, and as many ordinary ones, whose attention is compared"
    )
    attention_sentences: int = Field(default=20, ge=1, description="sentences that each of these is appended to")
    permutations: int = Field(default=1_000, ge=100, description="permutations of tokens in the attention test")
    reference: bool = Field(
        default=False, description="also run the published code's protocol: 120 encodes per scanned token"
    )
    reference_pairs: int = Field(default=5, ge=1, description="scoring pairs of this protocol")
    reference_validation_pairs: int = Field(default=250, ge=10, description="validation pairs of this protocol")
    basis: Literal["screened", "validated"] = Field(
        default="validated", description="name for the verdicts; with few draws they only screen"
    )

    limit_tokens: int | None = Field(default=None, ge=1, description="scan only so many tokens, drawn at random")
    exhaustive: bool = Field(
        default=False,
        description="every token gets all draws, u is of all entries, and shortlists have no limit (slow)",
    )

    def everything(self) -> StickySettings:
        """The same settings with all entries, draws and candidates: what ``exhaustive`` stands for."""
        every = {"similarity_entries": None, "scan_encodes": None, "max_shortlist": None}
        return self.model_copy(update={**every, "exhaustive": False})

    def may_validate_as_scanned(self, candidates: int, controls: int) -> bool:
        """Whether the validation may run in the scan's precision: only where that is left to us, on enough tokens."""
        return self.scan_dtype == "auto" and min(candidates, controls) >= 2 * COMPARED_TOKENS

    def work(self, readable: Readable) -> Iterator[Work]:
        # u: entries are encoded as text and by id; once if the two coincide.
        entries = min(self.similarity_entries or readable.vocabulary, readable.vocabulary)
        yield Work(1.2 * entries + min(SAMPLED_TOKENS, readable.vocabulary), TOKEN_LENGTH)
        sentences = readable.read("sts", self.sentences)
        yield sentences
        inserted = sentences.tokens + self.copies
        every = readable.searched * self.draws
        listed = min(2 * self.shortlist_share * readable.searched, 2 * (self.max_shortlist or readable.searched))
        evidence = 2 * (
            self.dose_tokens * len(self.doses) * self.dose_draws
            + self.shift_tokens * min(self.shift_pairs, readable.rows["sts"])
            + self.attention_tokens * self.attention_sentences
        )
        search = every if self.scan_encodes is None else min(every, self.scan_encodes)
        yield Work(search, inserted, runs_in="scan")
        validation = (listed + self.controls) * self.validation_draws
        as_scanned = self.may_validate_as_scanned(int(listed), self.controls)
        yield Work(validation, inserted, runs_in="scan" if as_scanned else "audit")
        yield Work(evidence, inserted)
        if self.reference:
            # 8 copies × 3 operators, on 5 pairs per token, and on 250 for the worst 2 %.
            validated = 0.02 * min(self.reference_validation_pairs, readable.rows["sts"])
            pairs = readable.searched * (self.reference_pairs + validated)
            yield Work(24 * pairs, inserted)

    def requested(self, request: Asked) -> StickySettings:
        settings = self.everything() if self.exhaustive else self
        if settings.reference:
            # Pairs are chosen below u, and u is held against published figures: of every entry, not estimated.
            settings = settings.model_copy(update={"similarity_entries": None})
        return settings


MEASURE_VERSION = 7

MEASURE = Measure(
    name="sticky",
    package=__name__,
    question="Which tokens, inserted into a text, pull its similarities towards one value?",
    parts=parts_of(__name__),
    settings=StickySettings,
    version=MEASURE_VERSION,
    rows=ROWS,
    view_summaries=(STICKY_TOKEN,),
    headline_figures={
        "sticky_summary": ("u", "outliers"),
        "sticky_token": ("worst_loss",),
        "sticky_severity": ("estimated",),
    },
    is_sharded=True,
    shown_tables=("sticky_summary", "sticky_reference_summary", "sticky_attention"),
)
