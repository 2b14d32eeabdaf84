"""Sub-flow: how much mean pooling throws away. Texts -> pairs in shards -> summary, for each corpus."""

from __future__ import annotations

from math import ceil
from typing import Any

from prefect import flow

from embaudit.measures.socm import MEASURE_VERSION
from embaudit.measures.socm.settings import SocmSettings
from embaudit.settings import Settings
from embaudit_flows.cached import run_cached, run_shards
from embaudit_flows.plan import AuditPlan
from embaudit_tasks import socm as tasks
from embaudit_tasks.results import Staged, StagedCorpus, note
from embaudit_tasks.socm_listed import socm_listed
from embaudit_tasks.socm_plane import socm_plane
from embaudit_tasks.socm_summary import socm_summary
from embaudit_tasks.socm_tightness import socm_tightness

# A pair of a list costs two encodes, about as much as a hundred pairs of texts that are embedded already.
PAIRS_PER_LISTED_PAIR = 100


@flow(name="second-order collapse", flow_run_name="SOCM of {plan.source}", persist_result=False)
def socm(plan: AuditPlan, ingested: dict[str, StagedCorpus]) -> list[Staged]:
    """SOCM over all pairs of each corpus of texts and over the pairs of each list; returns every staged file."""
    pairs_per_shard = Settings().pairs_per_shard
    staged = []
    for corpus in (ingested[name] for name in plan.profile.of(SocmSettings).corpora):
        staged += (_listed if corpus.kind == "pairs" else _all_pairs)(plan, corpus, pairs_per_shard)
    return staged


def _all_pairs(plan: AuditPlan, corpus: StagedCorpus, pairs_per_shard: int) -> list[Staged]:
    texts = min(plan.profile.of(SocmSettings).texts, corpus.rows)
    given = {"corpus": corpus.name, "staging": plan.staging}
    content = {"corpus_path": corpus.content_path, "texts": texts}

    def key(step: str, **inputs: object) -> str:
        return _key(plan, corpus, step, texts=texts, **inputs)

    described = run_cached(
        tasks.socm_texts, plan.spec, corpus_id=corpus.corpus_id, key=key("socm-texts"), **content, **given
    )
    shards = max(1, min(ceil(described.detail["all_pairs"] / pairs_per_shard), described.detail["blocks"]))
    computed = run_shards(
        tasks.socm_pairs,
        plan.spec,
        [{"shard": shard, "key": key("socm-pairs", shard=shard, shards=shards)} for shard in range(shards)],
        shards=shards,
        **content,
        **given,
    )
    staged = [
        described,
        *computed,
        *_summary(plan, corpus, "all", [described], computed, {"texts": texts, "shards": shards}),
    ]
    if described.detail["all_pairs"]:
        staged.append(
            run_cached(
                socm_plane,
                plan.spec,
                corpus_path=corpus.content_path,
                pair_paths=[part.path for part in computed],
                key=key("socm-plane", shards=shards),
                **given,
            )
        )
    sample = plan.profile.of(SocmSettings).tightness_pairs
    if sample:
        staged.append(
            run_cached(
                socm_tightness, plan.spec, pairs=sample, key=key("socm-tightness", pairs=sample), **content, **given
            )
        )
    return [*staged, *_undefined(plan, corpus, [described])]


def _listed(plan: AuditPlan, corpus: StagedCorpus, pairs_per_shard: int) -> list[Staged]:
    pairs = min(plan.profile.of(SocmSettings).listed_pairs, corpus.rows)
    size = max(1, pairs_per_shard // PAIRS_PER_LISTED_PAIR)
    bounds = [{"pairs": pairs, "start": start, "stop": min(start + size, pairs)} for start in range(0, pairs, size)]
    shards = [
        {"shard": shard, "key": _key(plan, corpus, "socm-listed", **bound), **bound}
        for shard, bound in enumerate(bounds)
    ]
    listed = run_shards(
        socm_listed,
        plan.spec,
        shards,
        corpus=corpus.name,
        corpus_id=corpus.corpus_id,
        corpus_path=corpus.content_path,
        staging=plan.staging,
    )
    parts = [part for files in listed for part in files]
    # A shard may bring no text that is new, or no pair that is defined.
    texts = [part for part in parts if part.table == "socm_text" and part.rows]
    computed = [part for part in parts if part.table == "socm_listed_pair" and part.rows]
    summary = _summary(plan, corpus, "listed", texts, computed, {"pairs": pairs, "size": size})
    return [*texts, *computed, *summary, *_undefined(plan, corpus, texts)]


def _summary(
    plan: AuditPlan,
    corpus: StagedCorpus,
    pair_kind: str,
    texts: list[Staged],
    pairs: list[Staged],
    inputs: dict[str, int],
) -> list[Staged]:
    exponents = list(plan.profile.of(SocmSettings).exponents)
    summary: list[Staged] = run_cached(
        socm_summary,
        plan.spec,
        corpus=corpus.name,
        corpus_id=corpus.corpus_id,
        pair_kind=pair_kind,
        text_paths=[part.path for part in texts],
        pair_paths=[part.path for part in pairs],
        exponents=exponents,
        method=pairs[0].detail["method"] if pairs else "eigenvalues",
        accuracy=max((part.detail["accuracy"] for part in pairs), default=0.0),
        checked_pairs=sum(part.detail["checked_pairs"] for part in pairs),
        key=_key(plan, corpus, "socm-summary", exponents=exponents, kind=pair_kind, **inputs),
        staging=plan.staging,
    )
    return summary


def _key(plan: AuditPlan, corpus: StagedCorpus, step: str, **inputs: Any) -> str:
    return plan.unseeded_key(step, MEASURE_VERSION, corpus=corpus.corpus_id, name=corpus.name, **inputs)


def _undefined(plan: AuditPlan, corpus: StagedCorpus, texts: list[Staged]) -> list[Staged]:
    """A line for the audit's end where texts had to be left out."""
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
