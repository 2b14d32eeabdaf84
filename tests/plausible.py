"""An audit's rows as the flows stage them, small enough to check by hand: for tests of publishing, checks and SQL.

The numbers obey every rule that the suites check (bounds of d_Σ, ranks, verdicts, counts), so that a test breaks
exactly the one it is about.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

from declared_rows import NOON, Table, row_of, rows_of
from plausible_answers import answer_rows
from plausible_documents import chunk_rows, position_rows
from plausible_records import finding_rows, gate_rows, watch_rows
from plausible_searches import attractor_rows, meaning_rows, surface_rows
from plausible_socm import layer_rows, socm_rows
from plausible_sticky import ORIGINS, SCRIPTS, TOKENS, sticky_rows
from plausible_tasks import impact_rows, mitigation_rows, placement_rows, tempscale_rows
from plausible_texts import first_minute_rows, geometry_rows, length_rows, occurrence_rows
from plausible_vectors import compression_rows, language_rows

from embaudit.measures import MEASURES
from embaudit.steps.staging.stage import write_rows
from embaudit.warehouse.publish import AuditRecord, ExpectationRow, MeasureRun
from embaudit.warehouse.tables import TABLES
from embaudit.warehouse.write import StagedTable

Rows = dict[str, Table]
SCHEMAS = {name: table.schema for name, table in TABLES.items()}


def plausible_rows(checkpoint: str = "c1", source: str = "packaged:tiny", shift: float = 0.0) -> Rows:
    """All tables of one audit.

    Args:
        shift: added to all slopes, so that two checkpoints differ.
    """
    return {
        **_subjects(checkpoint, source),
        **sticky_rows(shift),
        **socm_rows(),
        "audit_backbone": [{"audit_id": "a2", "backbone_audit_id": "a3"}],
        **gate_rows(),
        **layer_rows(),
        **first_minute_rows(),
        **geometry_rows(),
        **surface_rows(),
        **meaning_rows(),
        **attractor_rows(),
        **position_rows(),
        **chunk_rows(),
        **compression_rows(),
        **language_rows(),
        **occurrence_rows(),
        **finding_rows(),
        **length_rows(),
        **tempscale_rows(),
        **impact_rows(),
        **mitigation_rows(),
        **placement_rows(),
        **watch_rows(),
        **answer_rows(),
    }


def stage_all(folder: Path, rows: Mapping[str, list[dict[str, Any]]]) -> list[StagedTable]:
    """Stage every table in a file of its own, in the schemas of the tasks."""
    staged = []
    for table, table_rows in rows.items():
        path = folder / f"{table}-00000.parquet"
        write_rows(path, table_rows, SCHEMAS[table])
        staged.append(StagedTable(table, (str(path),)))
    return staged


def audit_record(
    audit_id: str = "a1", checkpoint: str = "c1", status: str = "published", reason: str | None = None, minutes: int = 0
) -> AuditRecord:
    """An audit's log row, finished so many minutes after noon."""
    finished = NOON + timedelta(minutes=minutes)
    return AuditRecord(
        audit_id=audit_id,
        checkpoint_id=checkpoint,
        profile="quick",
        settings={"sticky": {"copies": 8}},
        seed=0,
        device="cpu",
        dtype="float32",
        embaudit_version="0.1.0",
        libraries={"torch": "2.13.0"},
        started=finished - timedelta(seconds=30),
        finished=finished,
        seconds=30.0,
        status=status,
        reason=reason,
    )


def measure_runs(rows: Rows | None = None) -> list[MeasureRun]:
    """One run for each measure; of those with rows, if given."""
    return [
        MeasureRun(measure, f"key-{measure}", 1, {"seed": 0}, NOON, 12.5, 100, "done")
        for measure, declared in MEASURES.items()
        if rows is None or any(rows.get(row.table.name) for row in declared.rows)
    ]


def expectation(
    table: str = "token", shard: int = 0, *, success: bool = True, severity: str = "critical"
) -> ExpectationRow:
    """One expectation's outcome."""
    return ExpectationRow(
        table_name=table,
        shard=shard,
        expectation="expect_column_values_to_not_be_null",
        column_name="token_id",
        kwargs={"column": "token_id"},
        severity=severity,
        success=success,
        raised_exception=False,
        unexpected_count=0 if success else 2,
        examples=[] if success else [{"token_id": 3}],
    )


def _subjects(checkpoint: str, source: str) -> Rows:
    return {
        "checkpoint": [
            row_of(
                "checkpoint",
                **{"checkpoint_id": checkpoint, "source": source},
                weights_sha256=sha256(checkpoint.encode()).hexdigest(),
                **dict.fromkeys(("tokenizer_sha256", "config_sha256", "modules_sha256"), "ab" * 32),
                **{"architecture": "BertModel", "hidden_size": 32, "layers": 2, "heads": 4, "parameters": 12_345},
                **{"vocabulary_size": len(TOKENS), "pooling": "mean", "pooling_is_mean": True, "modules": "Normalize"},
                **{"max_length": 64, "query_prompt": "query: ", "pools_prompt": True},
            )
        ],
        "corpus": rows_of(
            "corpus",
            "corpus_id name kind read kept duplicate broken",
            ("w1", "wikipedia", "texts", 5, 4, 1, 0),
            ("s1", "sts", "pairs", 3, 2, 0, 1),
            **{"source": "sample", "blank": 0, "undecodable": 0, "undrawn": 0, "share_read": 1.0},
        ),
        "text": rows_of(
            "text",
            "position text",
            *enumerate(("Rivers flow.", "Stars burn.", "Bees fly.", "Iron rusts.")),
        ),
        "text_pair": rows_of(
            "text_pair",
            "position first second score",
            (0, "A man sings.", "A man is singing.", 4.8),
            (1, "Cats.", "Taxes.", 0.2),
            **{"corpus_id": "s1", "relation": "sts"},
        ),
        "audit_corpus": rows_of("audit_corpus", "name corpus_id", ("wikipedia", "w1"), ("sts", "s1")),
        "token": [
            row_of(
                "token",
                **{"checkpoint_id": checkpoint, "token_id": i, "token": token, "text": token.removeprefix("##")},
                category="special" if token == "[MASK]" else "unreachable_multi" if token[:2] == "##" else "ok",
                **{"is_reachable": token != "[MASK]", "origin": ORIGINS[i], "script": SCRIPTS[i]},
                **{"embedding_norm": 1.0 + i / 10, "cosine_to_mean": 0.3},
            )
            for i, token in enumerate(TOKENS)
        ],
    }
