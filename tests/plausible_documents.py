"""Rows of what is measured on long documents: where evidence may stand in them, and in what pieces they are found."""

from __future__ import annotations

from declared_rows import Table, row_of, rows_of


def position_rows() -> dict[str, Table]:
    """Evidence that counts for less towards the end, and for nothing behind the limit."""
    depths = (
        *(("1/4", True, 50.0, 0.25, 0.16, -0.04, 0.8, False), ("1/2", True, 100.0, 0.24, 0.14, -0.06, 0.7, False)),
        *(("3/4", True, 150.0, 0.22, 0.12, -0.08, 0.6, False), ("1", True, 200.0, 0.2, 0.08, -0.12, 0.4, True)),
        *(("0", True, 0.0, 0.3, 0.2, 0.0, 1.0, False), ("alone", True, None, 0.6, 0.5, None, 2.5, False)),
    )
    names = "depth is_read tokens_before score gain change kept is_lost"
    beyond = row_of(
        "position",
        **{"depth": "beyond", "is_read": False, "tokens_before": 254.0, "score": None, "change": -0.2, "kept": 0.0},
        **{"gain": 0.0, "gain_low": None, "gain_high": None, "won": 0.5, "won_low": None, "won_high": None},
        **{"queries": 24, "is_lost": True},
    )
    summary = row_of(
        "position_summary",
        **{"data_set": "sample", "length_limit": 254, "tokens": 254, "evidence_tokens": 40.0, "queries": 24},
        **{"documents": 270, "truncated": 30, "unwritten": 1, "left_out": 1, "lost_from": "1"},
    )
    return {
        "position": [*rows_of("position", names, *depths, queries=24, won=0.9, won_low=0.8, won_high=0.95), beyond],
        "position_summary": [summary],
    }


def chunk_rows() -> dict[str, Table]:
    """Composed documents, found better in pieces of 64 tokens, by what whole documents cut off."""
    ways = (("whole", 254, 0.6), ("best", 64, 0.9), ("mean", 64, 0.8), ("best", 128, 0.85), ("mean", 128, 0.75))
    cells = [(way if way == "whole" else f"{way} {size}", way, size, score, score - 0.6) for way, size, score in ways]
    names = "searched way size score gain"
    choice = row_of(
        "chunk_choice",
        **{"data_set": "sample", "is_composed": True, "passages": 4, "documents": 33, "tokens": 448.0},
        **{"length_limit": 254, "truncated": 33, "unwritten": 0, "way": "best", "size": 64, "whole": 0.6, "gain": 0.3},
        **{"choosing": 44, "reporting": 44},
    )
    whole = {"pieces": 1.0, "cut": 0, "is_best": False}
    return {
        "chunk": [
            *rows_of("chunk", names, cells[0], queries=88, **whole),
            *rows_of("chunk", names, *cells[1:], queries=88, pieces=7.0, cut=33, is_best=False),
        ],
        "chunk_length": [
            row
            for part, queries in (("passage read", 36), ("passage cut", 52))
            for row in rows_of("chunk_length", names, *cells, part=part, queries=queries)
        ],
        "chunk_choice": [choice],
    }
