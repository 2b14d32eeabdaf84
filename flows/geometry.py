"""Sub-flow: how the vectors of each corpus of texts fill their space."""

from __future__ import annotations

from prefect import flow

from embaudit.measures.geometry.settings import GeometrySettings
from embaudit_flows.plan import AuditPlan
from embaudit_tasks.geometry import corpus_geometry
from embaudit_tasks.results import Staged, StagedCorpus, note


@flow(name="geometry", flow_run_name="geometry of {plan.source}", persist_result=False)
def geometry(plan: AuditPlan, ingested: dict[str, StagedCorpus]) -> list[Staged]:
    """Anisotropy, ranks, dominating dimensions and hubs of each corpus; undefined figures are listed in a note."""
    staged: list[Staged] = []
    settings = plan.profile.of(GeometrySettings)
    for corpus in (ingested[name] for name in settings.corpora):
        draw = settings.draw_from(corpus.name, corpus.rows, plan.seed)
        row, dimensions = corpus_geometry(plan.staging, plan.spec, corpus, draw, settings.neighbours)
        # A single text has no cosine for a dimension to contribute to.
        staged += [part for part in (row, dimensions) if part.rows]
        if row.detail["undefined"]:
            names = ", ".join(row.detail["undefined"])
            staged.append(note(f"Undefined, geometry of {draw.rows} texts of {corpus.name}: {names}.", plan.staging))
    return staged
