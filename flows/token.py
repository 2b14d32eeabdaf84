"""Measures a few tokens in full, without a flow run, for ``embaudit token``; reuses what audits have staged."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from embaudit.checkpoint import Encoder
from embaudit.corpora.load import load_corpus
from embaudit.corpora.records import read_chosen_pairs
from embaudit.measures.sticky import StickySettings
from embaudit.measures.sticky.insertion import SentencePair, distinct_sentences, split_sentences
from embaudit.measures.sticky.inspect import choose_reference_pairs, find_token, inspect_reference, inspect_tokens
from embaudit.measures.sticky.points import VALIDATION_GROUPS, Points, every_against_every, given_pairs
from embaudit.measures.sticky.steps.files import read_u
from embaudit.measures.sticky.steps.sentences import read_tokens, token_similarity
from embaudit.steps.progress import show, tracked
from embaudit.steps.results import Staged, encoder_of
from embaudit.steps.staging.stage import read_rows
from embaudit_flows.plan import AuditPlan


def look_at_tokens(
    plan: AuditPlan, wanted: Sequence[str], protocols: Sequence[str], corpus: str, controls: int | None
) -> list[dict[str, Any]]:
    """One dictionary per token, in the order given, with the fields of every requested protocol.

    Args:
        wanted: ids, strings of the vocabulary, or texts (``embaudit.measures.sticky.inspect.find_token``).
        corpus: source of the sentences to draw if the plan does not name all pairs that a protocol needs.
        controls: number of ordinary tokens to compare with; None: the profile's.
    """
    encoder = encoder_of(plan.spec)
    token_ids = [find_token(encoder.checkpoint, one) for one in wanted]
    settings = plan.profile.of(StickySettings)
    if controls is not None:
        settings = settings.model_copy(update={"controls": controls})
    (tokens,) = read_tokens.compute(plan.staging, plan.spec)
    entries = read_rows([tokens.path])
    found: list[dict[str, Any]] = [{"id": token_id, "dtype": plan.spec.dtype} for token_id in token_ids]
    if "definition" in protocols or "retention" in protocols:
        points = _points(plan, encoder, corpus, _u(plan, tokens))
        work = (len(set(token_ids)) + settings.controls) * len(points.draws)
        with tracked("insert tokens and controls", work) as advance:
            rows = inspect_tokens(encoder, points, token_ids, entries, settings, plan.seed, advance)
        found = [one | row for one, row in zip(found, rows, strict=True)]
    if "reference" in protocols:
        scoring, validation = _reference_pairs(plan, encoder, tokens, corpus)
        distinct = len({second for _, second in validation}) + len({second for _, second in scoring})
        with tracked("reference protocol", len(token_ids) * distinct * 3 * settings.copies) as advance:
            rows = inspect_reference(
                encoder, validation, scoring, token_ids, entries, settings.copies, plan.seed, advance
            )
        found = [one | row for one, row in zip(found, rows, strict=True)]
    return found


def _u(plan: AuditPlan, tokens: Staged) -> float:
    """Of every entry, whatever the profile estimates it from: one token's figures are quoted as the definition's."""
    similarity, _ = token_similarity(plan.run({}), tokens, None)
    return read_u(similarity)


def _given(plan: AuditPlan, purpose: str) -> list[tuple[str, str]] | None:
    source = plan.pair_sources.get(purpose)
    return None if source is None else list(read_chosen_pairs(Path(source)).pairs)


def _reference_pairs(
    plan: AuditPlan, encoder: Encoder, tokens: Staged, corpus: str
) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Scoring and validation pairs: the plan's, or pairs below u chosen as in the published code."""
    given = {purpose: found for purpose in ("scoring", "validation") if (found := _given(plan, purpose))}
    if len(given) < 2:
        settings = plan.profile.of(StickySettings)
        texts = _sentences(settings.corpora[0], corpus)
        chosen = choose_reference_pairs(
            encoder,
            texts,
            _u(plan, tokens),
            {"scoring": settings.reference_pairs, "validation": settings.reference_validation_pairs},
            settings.sentences,
            plan.seed,
        )
        given = {name: [(pair.first, pair.second) for pair in pairs] for name, pairs in chosen.items()} | given
    return given["scoring"], given["validation"]


def _points(plan: AuditPlan, encoder: Encoder, corpus: str, u: float) -> Points:
    """The plan's validation pairs, or draws and anchors from a corpus as in the profile's validation."""
    settings = plan.profile.of(StickySettings)
    given = _given(plan, "validation")
    if given is not None:
        pairs = [SentencePair(first, second, float("nan")) for first, second in given]
        return given_pairs(encoder, pairs, u, settings.copies, plan.seed)
    sentences = distinct_sentences(_sentences(settings.corpora[0], corpus), settings.sentences, plan.seed)
    _, chosen = split_sentences(sentences, settings.draws, settings.validation_draws, plan.seed)
    return every_against_every(encoder, chosen.draws, chosen.anchors, u, settings.copies, plan.seed, VALIDATION_GROUPS)


def _sentences(name: str, source: str) -> list[str]:
    """Both sides of all pairs of a corpus; what was dropped is shown."""
    read = load_corpus(name, source)
    show(f"Corpus {name}, {read.source}: {read.counts}")
    return [side for pair in read.pairs for side in (pair.first, pair.second)]
