"""Sub-flow: does the checkpoint do what an embedding is for, and is it declared right?"""

from __future__ import annotations

from prefect import flow

from embaudit.checking.verdict import TOKENIZER
from embaudit.errors import NotMeasurable
from embaudit.measures.integrity.tables import STAGED
from embaudit.measures.quality.settings import QualitySettings
from embaudit.warehouse.stage import read_rows
from embaudit_flows.plan import AuditPlan
from embaudit_tasks.downstream import corpora_of
from embaudit_tasks.quality import checkpoint_quality
from embaudit_tasks.results import Staged, StagedCorpus, checkpoint_of, note


@flow(name="quality", flow_run_name="quality of {plan.source}", persist_result=False)
def quality(plan: AuditPlan, ingested: dict[str, StagedCorpus], earlier: list[Staged]) -> list[Staged]:
    """Scores of each data set, by layer and of other readings, in float32 whatever the audit runs in.

    Args:
        earlier: what the measure ``integrity`` staged.
    """
    found = read_rows([part.path for part in earlier if part.table == STAGED])
    is_broken = any(row["level"] == "problem" and row["name"] in TOKENIZER for row in found)
    names = plan.profile.of(QualitySettings).corpora
    corpora = [corpus for name in names for corpus in corpora_of(name, ingested)]
    try:
        staged = checkpoint_quality(plan.staging, plan.spec.in_float32, corpora, is_broken)
    except NotMeasurable as error:
        return [note(f"Not checked, quality: {error.happened}", plan.staging)]
    finally:
        if plan.spec != plan.spec.in_float32:
            # Nothing else reads it in this precision, and both may not fit.
            checkpoint_of.cache_clear()
    return [part for part in staged if part.rows]
