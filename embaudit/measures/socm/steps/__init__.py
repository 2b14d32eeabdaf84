"""SOCM's steps: how much mean pooling throws away. Texts -> pairs in shards -> summary, for each corpus."""

from __future__ import annotations

from math import ceil

from embaudit.corpora.draw import Draw
from embaudit.measures.run import Run
from embaudit.measures.socm import SocmSettings
from embaudit.measures.socm.steps.summary import socm_contrast, socm_cut, socm_listed, socm_summary
from embaudit.measures.socm.steps.texts import (
    DescribedTexts,
    UndefinedTexts,
    socm_pairs,
    socm_plane,
    socm_poolings,
    socm_texts,
    socm_tightness,
)
from embaudit.steps.results import Staged, StagedCorpus
from embaudit.system.settings import Settings

# A listed pair costs two encodes, about as much as a hundred pairs of texts that are already embedded.
PAIRS_PER_LISTED_PAIR = 100


def measure(run: Run) -> list[Staged]:
    """SOCM of all pairs of texts of each corpus, and of the pairs of each list; returns every staged file."""
    pairs_per_shard = Settings().pairs_per_shard
    staged = []
    for corpus in (run.corpora[name] for name in run.settings(SocmSettings).corpora):
        staged += (_listed if corpus.kind == "pairs" else _all_pairs)(run, corpus, pairs_per_shard)
    return staged


def _all_pairs(run: Run, corpus: StagedCorpus, pairs_per_shard: int) -> list[Staged]:
    settings, spec = run.settings(SocmSettings), run.spec
    draw = settings.draw_from(corpus.name, corpus.rows, run.seed)
    described = run(socm_texts, spec, corpus, draw)
    (texts,) = described
    found = texts.found(DescribedTexts)
    shards = max(1, min(ceil(found.all_pairs / pairs_per_shard), found.blocks))
    numbers = [{"shard": shard, "shards": shards} for shard in range(shards)]
    pairs = run.sharded(socm_pairs, numbers, spec=spec, corpus=corpus, draw=draw)
    staged = [
        *described,
        *pairs,
        *run(socm_summary, spec, corpus, "all", described, pairs, list(settings.exponents)),
    ]
    if found.all_pairs:
        staged += run(socm_plane, spec, corpus, pairs)
    if settings.cut_tokens:
        # Pairs cost most, and their number grows with the square; 300 texts give a mean to within about .015.
        few = Draw.of(min(settings.cut_texts, draw.rows), corpus.rows, settings.draw, run.seed)
        # All texts may be shorter.
        staged += [part for part in run(socm_cut, spec, corpus, few, list(settings.cut_tokens)) if part.rows]
    if settings.pooling_texts and found.all_pairs:
        few = Draw.of(min(settings.pooling_texts, draw.rows), corpus.rows, settings.draw, run.seed)
        staged += [part for part in run(socm_poolings, spec, corpus, few, pairs) if part.rows]
    if settings.tightness_pairs:
        staged += run(socm_tightness, spec, corpus, draw, settings.tightness_pairs)
    return [*staged, *_undefined(run, corpus, described)]


def _listed(run: Run, corpus: StagedCorpus, pairs_per_shard: int) -> list[Staged]:
    settings = run.settings(SocmSettings)
    draw = settings.draw_from(corpus.name, corpus.rows, run.seed)
    size = max(1, pairs_per_shard // PAIRS_PER_LISTED_PAIR)
    bounds = [{"start": start, "stop": min(start + size, draw.rows)} for start in range(0, draw.rows, size)]
    listed = run.sharded(socm_listed, bounds, spec=run.spec, corpus=corpus, draw=draw)
    # A shard may have no new text, or no defined pair.
    texts = [part for part in listed if part.table == "socm_text" and part.rows]
    pairs = [part for part in listed if part.table == "socm_listed_pair" and part.rows]
    summary = run(socm_summary, run.spec, corpus, "listed", texts, pairs, list(settings.exponents))
    staged = [*texts, *pairs, *summary]
    if settings.contrast_pairs:
        found = run(socm_contrast, run.spec, corpus, draw, settings.contrast_pairs)
        # With a single query there are no random pairs.
        staged += [part for part in found if part.rows]
    return [*staged, *_undefined(run, corpus, texts)]


def _undefined(run: Run, corpus: StagedCorpus, texts: list[Staged]) -> list[Staged]:
    """A note for the audit's end if texts had to be left out."""
    found = [part.found(UndefinedTexts) for part in texts]
    count = sum(part.undefined for part in found)
    if not count:
        return []
    positions = [position for part in found for position in part.undefined_positions]
    named = ", ".join(map(str, positions[:5])) + (" …" if count > 5 else "")
    return [
        run.note(
            f"SOCM left out {count} of the texts of {corpus.name}, whose token vectors average to zero: number {named}."
        )
    ]
