"""Which tokens are put into texts."""

from __future__ import annotations

from typing import Any

from embaudit.measures.impact.arms import found_arms, with_ordinary

TOKENS = [{"token_id": place, "is_reachable": place != 3, "category": "ok", "origin": "word"} for place in range(20)]


def verdict(token: int, protocol: str, q_value: float | None, **values: Any) -> dict[str, Any]:
    return {"token_id": token, "protocol": protocol, "role": "candidate", "q_value": q_value, **values}


def test_arms_are_the_worst_of_each_protocol_that_a_text_can_hold() -> None:
    tables = {
        "token": TOKENS,
        "sticky_validation": [
            *(verdict(token, "retention", 0.1, loss=token / 10, pull=0.0) for token in (1, 2, 3, 4)),
            # The other protocol's candidate.
            verdict(9, "retention", None, loss=0.99, pull=0.0),
            *(verdict(token, "definition", 0.1, loss=0.0, pull=1 - token / 10) for token in (5, 4, 6)),
            verdict(8, "retention", None, loss=1.0, pull=0.0) | {"role": "control"},
        ],
    }
    assert found_arms(lambda table: tables.get(table, []), 2) == {"retention": [4, 2], "definition": [4, 5]}
    tables["sticky_reference"] = [{"token_id": 7, "value": 0.9}, {"token_id": 1, "value": None}]
    assert found_arms(lambda table: tables.get(table, []), 2)["reference"] == [7]
    assert found_arms(lambda _: [], 2) == {}


def test_ordinary_tokens_are_in_no_other_arm() -> None:
    arms = with_ordinary({"retention": [4, 2], "given": list(range(10, 20))}, TOKENS, 3, seed=0)
    assert list(arms) == ["ordinary", "retention", "given"]
    assert len(arms["ordinary"]) == 3
    assert not set(arms["ordinary"]) & {4, 2, *range(10, 20)}
