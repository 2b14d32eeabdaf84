"""Sub-flow: how much mean pooling throws away. Texts -> pairs in shards -> summary, for each corpus."""

from __future__ import annotations

from math import ceil

from prefect import flow

from embaudit.draw import Draw
from embaudit.measures.socm.settings import SocmSettings
from embaudit.settings import Settings
from embaudit_flows.plan import AuditPlan
from embaudit_flows.shards import run_shards
from embaudit_tasks.results import Staged, StagedCorpus, note
from embaudit_tasks.socm import socm_pairs, socm_texts
from embaudit_tasks.socm_contrast import socm_contrast
from embaudit_tasks.socm_cut import socm_cut
from embaudit_tasks.socm_listed import socm_listed
from embaudit_tasks.socm_plane import socm_plane
from embaudit_tasks.socm_poolings import socm_poolings
from embaudit_tasks.socm_summary import socm_summary
from embaudit_tasks.socm_tightness import socm_tightness

# A listed pair costs two encodes, about as much as a hundred pairs of texts that are already embedded.
PAIRS_PER_LISTED_PAIR = 100


@flow(name="second-order collapse", flow_run_name="SOCM of {plan.source}", persist_result=False)
def socm(plan: AuditPlan, ingested: dict[str, StagedCorpus]) -> list[Staged]:
    """SOCM of all pairs of texts of each corpus, and of the pairs of each list; returns every staged file."""
    pairs_per_shard = Settings().pairs_per_shard
    staged = []
    for corpus in (ingested[name] for name in plan.profile.of(SocmSettings).corpora):
        staged += (_listed if corpus.kind == "pairs" else _all_pairs)(plan, corpus, pairs_per_shard)
    return staged


def _all_pairs(plan: AuditPlan, corpus: StagedCorpus, pairs_per_shard: int) -> list[Staged]:
    settings, staging, spec = plan.profile.of(SocmSettings), plan.staging, plan.spec
    draw = settings.draw_from(corpus.name, corpus.rows, plan.seed)
    described = socm_texts(staging, spec, corpus, draw)
    (found,) = described
    shards = max(1, min(ceil(found.detail["all_pairs"] / pairs_per_shard), found.detail["blocks"]))
    numbers = [{"shard": shard, "shards": shards} for shard in range(shards)]
    pairs = run_shards(socm_pairs, staging, numbers, spec=spec, corpus=corpus, draw=draw)
    staged = [
        *described,
        *pairs,
        *socm_summary(staging, spec, corpus, "all", described, pairs, list(settings.exponents)),
    ]
    if found.detail["all_pairs"]:
        staged += socm_plane(staging, spec, corpus, pairs)
    if settings.cut_tokens:
        # Pairs cost most, and their number grows with the square; 300 texts give a mean to within about .015.
        few = Draw.of(min(settings.cut_texts, draw.rows), corpus.rows, settings.draw, plan.seed)
        # All texts may be shorter.
        staged += [part for part in socm_cut(staging, spec, corpus, few, list(settings.cut_tokens)) if part.rows]
    if settings.pooling_texts and found.detail["all_pairs"]:
        few = Draw.of(min(settings.pooling_texts, draw.rows), corpus.rows, settings.draw, plan.seed)
        staged += [part for part in socm_poolings(staging, spec, corpus, few, pairs) if part.rows]
    if settings.tightness_pairs:
        staged += socm_tightness(staging, spec, corpus, draw, settings.tightness_pairs)
    return [*staged, *_undefined(plan, corpus, described)]


def _listed(plan: AuditPlan, corpus: StagedCorpus, pairs_per_shard: int) -> list[Staged]:
    settings = plan.profile.of(SocmSettings)
    draw = settings.draw_from(corpus.name, corpus.rows, plan.seed)
    size = max(1, pairs_per_shard // PAIRS_PER_LISTED_PAIR)
    bounds = [{"start": start, "stop": min(start + size, draw.rows)} for start in range(0, draw.rows, size)]
    listed = run_shards(socm_listed, plan.staging, bounds, spec=plan.spec, corpus=corpus, draw=draw)
    # A shard may have no new text, or no defined pair.
    texts = [part for part in listed if part.table == "socm_text" and part.rows]
    pairs = [part for part in listed if part.table == "socm_listed_pair" and part.rows]
    summary = socm_summary(plan.staging, plan.spec, corpus, "listed", texts, pairs, list(settings.exponents))
    staged = [*texts, *pairs, *summary]
    if settings.contrast_pairs:
        found = socm_contrast(plan.staging, plan.spec, corpus, draw, settings.contrast_pairs)
        # With a single query there are no random pairs.
        staged += [part for part in found if part.rows]
    return [*staged, *_undefined(plan, corpus, texts)]


def _undefined(plan: AuditPlan, corpus: StagedCorpus, texts: list[Staged]) -> list[Staged]:
    """A note for the audit's end if texts had to be left out."""
    count = sum(part.detail["undefined"] for part in texts)
    if not count:
        return []
    positions = [position for part in texts for position in part.detail["undefined_positions"]]
    named = ", ".join(map(str, positions[:5])) + (" …" if count > 5 else "")
    return [
        note(
            f"SOCM left out {count} of the texts of {corpus.name}, whose tokens average to nothing: number {named}.",
            plan.staging,
        )
    ]
