"""Rows of answers that are kept: nights of a search, of golden queries, of an endpoint and of an index."""

from __future__ import annotations

from datetime import timedelta

from declared_rows import NOON, Table, rows_of

NEXT, LAST = NOON + timedelta(days=1), NOON + timedelta(days=2)
# The third night nothing had changed.
AWAY = "/passports/tiny.json", "http://away"
INDEX, ENDPOINT = ("/models/tiny", "/indexes/one"), ("/passports/tiny.json", "http://search")
STANDS = "Recall@10 is 0.80.", 1, *INDEX


def answer_rows() -> dict[str, Table]:
    """A search whose recall falls, a golden query that is lost, an endpoint that stays what it was."""
    return {
        "answer": rows_of(
            "answer",
            "answer_id question_key computed_id content_key problems asks asked verdict level line exit_code "
            "function subject",
            ("s1", "q1", "s1", "c1", "", "search", NOON, "finds what it holds", "ok", "It finds.", 0, *INDEX),
            (
                *("s2", "q1", "s2", "c2", "p1", "search", NEXT, "does not find what it holds", "problem"),
                *("Recall@10 is 0.80.", 1, *INDEX),
            ),
            ("w1", "q2", "w1", "c3", "", "why", NOON, "found", "ok", "2 of 2 are found.", 0, *INDEX),
            ("w2", "q2", "w2", "c4", "p2", "why", NEXT, "lost", "problem", "1 of 2 are found.", 1, *INDEX),
            ("v1", "q3", "v1", None, "", "verify", NOON, "the same function", "ok", "The same.", 0, *ENDPOINT),
            ("v2", "q3", "v2", None, "p4", "verify", NEXT, "another function", "problem", "Not it.", 1, *ENDPOINT),
            ("v3", "q5", "v3", None, "", "verify", NOON, "could not be compared", "not measured", "Silent.", 2, *AWAY),
            ("s3", "q1", "s2", "c2", "p1", "search", LAST, "does not find what it holds", "problem", *STANDS),
            ("i1", "q4", "i1", None, "", "vectors", NOON, "wholly its own", "ok", "First look.", 0, *INDEX),
            ("i2", "q4", "i2", None, "p3", "vectors", NEXT, "not wholly its own", "problem", "8 of 10.", 1, *INDEX),
            **{"question": "{}", "seconds": 2.5},
            embaudit_version="0.1.0",
        ),
        "answer_finding": rows_of(
            "answer_finding",
            "answer_id place name level sentence meaning advice value low high",
            ("s2", 0, "recall", "problem", "Recall@10 is 0.80.", "A fifth is lost.", "efSearch=64", 0.8, 0.75, 0.85),
            ("s2", 1, "reached", "ok", "Every row is reached.", "", "", None, None, None),
        ),
        "answer_figure": rows_of(
            "answer_figure",
            "answer_id figure item value low high of",
            ("s1", "recall_at_10", "", 0.99, 0.98, 1.0, 200),
            ("s2", "recall_at_10", "", 0.8, 0.75, 0.85, 200),
            ("s2", "recall_at_10", "efSearch=64", 0.97, 0.95, 0.99, 200),
            ("w1", "found", "", 1.0, 0.16, 1.0, 2),
            ("w2", "found", "", 0.5, 0.01, 0.99, 2),
            ("v1", "kinds_apart", "", 0.0, None, None, 21),
            ("v2", "kinds_apart", "", 21.0, None, None, 21),
            ("i1", "rows", "", 40.0, None, None, None),
            ("i2", "rows", "", 50.0, None, None, None),
            ("i2", "added", "", 10.0, None, None, None),
            ("i2", "new_foreign", "", 8.0, None, None, 10),
            ("v1", "worst", "plain", 5e-13, None, None, 10),
        ),
        "why_case": rows_of(
            "why_case",
            "answer_id place query expected lost cause sentence mend exact_rank store_rank",
            ("w1", 0, "gift returns", "policy-17", "found", "", "It is the first.", "", 1, 1),
            ("w1", 1, "opening hours", "page-3", "found", "", "It is the second.", "", 2, 2),
            ("w2", 0, "gift returns", "policy-17", "found", "", "It is the first.", "", 1, 1),
            ("w2", 1, "opening hours", "page-3", "absent", "", "There is no such row.", "Put it in.", None, None),
        ),
        "wrong_row": rows_of(
            "wrong_row",
            "answer_id place row finding since",
            ("i2", 0, "doc-50", "other_vectors", NEXT),
            ("i2", 1, "doc-51", "other_vectors", NEXT),
        ),
        "crowding_row": rows_of(
            "crowding_row",
            "answer_id place row met sentinels share share_low share_high first chance "
            "deviations displaced copies level text",
            ("i2", 0, "doc-7", 93, 300, 0.31, 0.258, 0.366, 10, 0.01, 5.2, 41, 1, "problem", "all you need to know"),
            ("i2", 1, "doc-9", 12, 300, 0.04, 0.021, 0.069, 10, 0.01, 3.4, 9, 2, "look", "home | about | contact"),
        ),
    }
