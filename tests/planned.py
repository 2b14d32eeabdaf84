"""Whether an audit's plan says about how much its measures encode."""

from __future__ import annotations

import json

import duckdb

from embaudit.measures import MEASURES
from embaudit.measures.measure import Readable
from embaudit_flows.plan import AuditOutcome


def assert_planned(outcome: AuditOutcome) -> None:
    """Of each measure at least half and at most twice the encodes that the log counted."""
    ratios = planned_of_encoded(outcome)
    assert ratios
    assert all(0.5 <= ratio <= 2 for ratio in ratios.values()), ratios


def planned_of_encoded(outcome: AuditOutcome) -> dict[str, float]:
    """Planned encodes over counted ones, by measure."""
    with duckdb.connect(outcome.warehouse, read_only=True) as connection:

        def ask(sql: str) -> list[tuple[object, ...]]:
            return connection.execute(sql.replace("?", f"'{outcome.audit_id}'")).fetchall()

        ((checkpoint,),) = ask(
            "SELECT to_json(checkpoint) FROM checkpoint JOIN audit USING (checkpoint_id) WHERE audit_id = ?"
        )
        ((settings,),) = ask("SELECT settings FROM audit WHERE audit_id = ?")
        rows = dict(ask("SELECT a.name, kept FROM audit_corpus AS a JOIN corpus USING (corpus_id) WHERE audit_id = ?"))
        runs = dict(ask("SELECT measure, encodes FROM measure_run WHERE audit_id = ?"))
    known, asked = json.loads(checkpoint), json.loads(settings)
    vocabulary = known["vocabulary_size"]
    readable = Readable(
        layers=known["layers"],
        heads=known["layers"] * known["heads"],
        hidden_size=known["hidden_size"],
        vocabulary=vocabulary,
        searched=min(asked.get("sticky", {}).get("limit_tokens") or vocabulary, vocabulary),
        max_length=known["max_length"],
        rows=rows,
        tokens=dict.fromkeys(rows, 20.0),
    )
    return {
        name: sum(one.texts for one in MEASURES[name].settings.model_validate(asked[name]).work(readable)) / encodes
        for name, encodes in runs.items()
        if encodes
    }
