"""Sub-flow: how length changes similarity, for each corpus of long texts, and σ_a by layer, head and length."""

from __future__ import annotations

from prefect import flow

from embaudit.errors import NotMeasurable
from embaudit.measures.length import MEASURE_VERSION
from embaudit.measures.length.settings import LengthSettings
from embaudit_flows.cached import run_cached
from embaudit_flows.plan import AuditPlan
from embaudit_tasks import length as tasks
from embaudit_tasks.results import Staged, StagedCorpus, note


@flow(name="length", flow_run_name="length of {plan.source}", persist_result=False)
def length(plan: AuditPlan, ingested: dict[str, StagedCorpus]) -> list[Staged]:
    """The length curve and its controls; σ_a beside them, or a note where the architecture is not known."""
    staged: list[Staged] = []
    every = plan.profile.of(LengthSettings)
    for corpus in (ingested[name] for name in every.corpora):
        # Each step is known by the settings that it reads: changing another one computes nothing anew.
        of_curve = every.model_dump(mode="json", exclude={"corpora", "sigma_texts", "sigma_lengths"})
        of_sigma = every.model_dump(mode="json", include={"texts", "longest", "sigma_texts", "sigma_lengths"})
        shared = {
            "corpus": corpus.name,
            "corpus_path": corpus.content_path,
            "seed": plan.seed,
            "staging": plan.staging,
        }
        inputs = {"corpus": corpus.corpus_id, "name": corpus.name}
        staged += run_cached(
            tasks.length_curve,
            plan.spec,
            corpus_id=corpus.corpus_id,
            settings=of_curve,
            key=plan.key("length", MEASURE_VERSION, settings=of_curve, **inputs),
            **shared,
        )
        try:
            found: list[Staged] = run_cached(
                tasks.length_sigma,
                plan.spec,
                settings=of_sigma,
                key=plan.key("length_sigma", MEASURE_VERSION, settings=of_sigma, **inputs),
                **shared,
            )
        except NotMeasurable as error:
            staged.append(note(f"Left out, sigma_a by length over {corpus.name}: {error.happened}", plan.staging))
            continue
        if not found:
            lengths = min(every.sigma_lengths)
            reason = f"fewer than two texts have {lengths} tokens."
            staged.append(note(f"Left out, sigma_a by length over {corpus.name}: {reason}", plan.staging))
        staged += found
    return staged
