"""Rows of findings, gates and watches, which are made of other rows."""

from __future__ import annotations

from datetime import timedelta

from declared_rows import NOON, Table, row_of, rows_of

from embaudit.declared.rule import Finding, as_rows


def finding_rows() -> dict[str, Table]:
    """Each level once, in an audit's order: with an interval, with neither, and with a value alone; and the verdict."""
    return {
        "finding": rows_of(
            "finding",
            "measure name place level value low high sentence meaning advice",
            (
                *("sticky", "worst_token", 0, "look", 0.62, 0.55, 0.69),
                *("8 copies of '龸' take away 62% [55%, 69%].", "Such texts look alike.", None),
            ),
            (
                *("audit", "real_corpora", 1, "not measured", None, None, None),
                *("How it does on your texts: sts came from the embedded sample.", None),
                "embaudit audit CHECKPOINT --corpus sts=FILE",
            ),
            (
                *("length", "long_pairs", 2, "problem", 0.8, None, None),
                *("80% of the pairs of long texts score higher.", None, "embaudit query length-pairs"),
            ),
        ),
        "verdict": [row_of("verdict", kind="look first", line="Look at 1 thing first.")],
    }


def staged_findings() -> dict[str, Table]:
    """What two measures pass on to their findings, in tables that are not published."""
    return {
        "integrity_finding": as_rows(
            [
                Finding("ok", "All tensors hold the values of the file.", name="weights_from_file"),
                Finding("look", "The limits disagree.", "Texts are cut.", "Set both.", "limits_disagree"),
            ]
        ),
        "quality_finding": as_rows(
            [
                Finding(
                    "ok", "It does better: +.20 [.10, .30].", name="no_better_than_words", value=0.2, low=0.1, high=0.3
                ),
                Finding("ok", "No layer loses.", name="lost_in_layer", value=0.0),
            ]
        ),
    }


def gate_rows() -> dict[str, Table]:
    """The audit a2 against a1: a change that trips, a limit that holds, a figure that is missing (warning only)."""
    return {
        "gate_result": rows_of(
            "gate_result",
            "rule kind measure outcome trips value lowest highest baseline_value change observed reason",
            (
                *("no strong change", "change", "worst_loss", "tripped", True),
                *(0.62, 0.4, 0.5, 0.45, 0.17, "", "users saw it"),
            ),
            ("few bad tokens", "limit", "strong_or_moderate", "passed", False, 3.0, None, 3.0, None, None, "", ""),
            ("a threshold", "limit", "threshold", "missing", False, *[None] * 5, "null in this audit", ""),
            **{"audit_id": "a2", "policy": "release", "policy_hash": "0123456789abcdef", "baseline_audit_id": "a1"},
            **{"summary": "sticky_token", "item": "retention"},
        )
    }


def watch_rows() -> dict[str, Table]:
    """A source with a new revision that got worse, after one that could not be read; a hub that was away."""
    return {
        "watched_revision": rows_of(
            "watched_revision",
            "source revision status audit_id checkpoint_id reason last_seen",
            ("/models/tiny", "c1", "audited", "a1", "c1", None, NOON),
            ("/models/tiny", "", "failed", None, None, "it has no weights", NOON + timedelta(minutes=5)),
            ("/models/tiny", "c2", "audited", "a3", "c2", None, NOON + timedelta(minutes=10)),
            ("owner/away", "", "unreachable", None, None, "no answer", NOON),
            **{"parameters_key": "k" * 16, "parameters": '{"profile": "quick"}'},
        ),
        "watch_run": rows_of(
            "watch_run",
            "run_key started state exit_code problem_count problems",
            ("n1", NOON, "Completed", 0, 0, "[]"),
            (
                *("n2", NOON + timedelta(days=1), "Index got worse", 1, 1),
                '[{"state": "Index got worse", "of": "/indexes/one", "said": "8 of 10."}]',
            ),
            **{"watch_list": "/watch.toml", "seconds": 30.0, "message": "1 seen"},
        ),
        "index_change": rows_of(
            "index_change",
            "predecessor_audit_id compared verdict line median_cosine",
            ("a1", "texts", "rebuild", "Rebuild: median cosine .31.", 0.31),
            ("a0", "canaries", "rebuild", "Rebuild: vectors of 768 dimensions.", None),
            audit_id="a3",
        ),
        "regression": rows_of(
            "regression",
            "summary item measure value predecessor_value delta relative_change worse_when tolerance is_worse",
            ("socm_summary", "wikipedia", "socm_mean", 0.5, 0.4, 0.1, 0.25, "higher", 0.02, True),
            ("socm_summary", "wikipedia", "socm_max", 0.9, 0.8, 0.1, 0.125, None, None, False),
            ("pooled_stat", "wikipedia", "normalised_spread", 0.5, 0.4, 0.1, 0.25, "lower", 0.04, False),
            ("sticky_severity", "moderate", "estimated", 3.0, 0.0, 3.0, None, "higher", 2.0, True),
            **{"audit_id": "a3", "predecessor_audit_id": "a1"},
        ),
    }
