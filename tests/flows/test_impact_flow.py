"""Impact through the audit flow: the worst that the search finds and ordinary tokens, on all tasks; and the command."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import numpy as np
import pytest
from commands import Embaudit
from judged_collections import write_collection
from planned import assert_planned
from small_audits import home_at
from tiny import ENGLISH

from embaudit.questions.audit import AuditRequest
from embaudit.words.errors import UsageError
from embaudit_flows.audit import AuditOutcome, audit

WORDS = ENGLISH.split()
QUERIES, DOCUMENTS = 24, 40
DROPPED = (
    "40 rows read: 40 kept, 0 duplicate, 0 blank, 0 broken, 0 not UTF-8",
    "24 rows read: 24 kept",
)
SCALES = {"five": 5, "one": 1}


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty documents, and twenty-four queries of five words of one each."""
    generator = np.random.default_rng(0)
    documents = [" ".join(map(str, generator.choice(WORDS, 25))) for _ in range(DOCUMENTS)]
    queries = [" ".join(text.split()[:5]) for text in documents[:QUERIES]]
    return write_collection(tmp_path_factory.mktemp("beir"), documents, queries)


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("texts") / "labelled.jsonl"
    texts = [{"text": f"{WORDS[i % 2]} {WORDS[i + 2]} {WORDS[i % 7]}", "label": "ab"[i % 2]} for i in range(60)]
    path.write_text("\n".join(map(json.dumps, texts)))
    return path


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two data sets of twenty pairs, with scores of 0 to 5 and of 0 to 1."""
    folder = tmp_path_factory.mktemp("sts")
    for name, top in SCALES.items():
        rows = [f"{top * i / 20}\t{WORDS[i]} {name}\t{WORDS[i + 1]} {WORDS[i + 2]}\n" for i in range(20)]
        (folder / f"{name}.tsv").write_text("".join(rows))
    return folder


@pytest.fixture(scope="module")
def request_(tiny_checkpoint: Path, tiny_profile: Path, collection: Path, labelled: Path, scored: Path) -> AuditRequest:
    return AuditRequest(
        checkpoint=str(tiny_checkpoint),
        profile=str(tiny_profile),
        measures=["sticky", "impact"],
        corpora={"retrieval": str(collection), "longdocs": str(labelled), "sts": str(scored)},
        device="cpu",
    )


@pytest.fixture(scope="module")
def outcome(
    prefect_api: str, request_: AuditRequest, tmp_path_factory: pytest.TempPathFactory, empty_once: Path
) -> AuditOutcome:
    """An audit of what one token does, to be read only."""
    with home_at(tmp_path_factory.mktemp("home"), empty_once):
        return audit(request_.changed(measures=["impact"], measure_settings={"impact": {"tokens": ["river"]}}))


@pytest.mark.slow
def test_every_task_has_every_arm(outcome: AuditOutcome) -> None:
    with duckdb.connect(outcome.warehouse, read_only=True) as connection:
        found = connection.execute(
            "SELECT metric, list_sort(list_distinct(list(arm))), min(items), max(texts), max(held) "
            "FROM impact GROUP BY 1 ORDER BY 1"
        ).fetchall()
        halves = connection.execute(
            "SELECT DISTINCT corpus, held, texts FROM impact WHERE poisoned = 'half'"
        ).fetchall()
    arms = ["clean", "given", "ordinary"]
    assert found == [
        ("accuracy", arms, 60, 60, 60),
        *((name, arms, QUERIES, DOCUMENTS, DOCUMENTS) for name in ("mrr_10", "ndcg_10", "recall_10")),
        ("spearman", arms, 40, 80, 80),
        ("v_measure", arms, 60, 60, 60),
    ]
    assert sorted(halves) == [("longdocs", 30, 60), ("retrieval", 20, 40), ("sts", 40, 80)]
    named = {row["name"] for row in outcome.findings if row["measure"] == "impact"}
    assert len(named) == 3
    assert named < {"loss_ndcg_10", "loss_v_measure", "loss_accuracy", "loss_spearman"}
    assert_planned(outcome)


@pytest.mark.slow
def test_the_worst_that_the_search_finds(home: Path, request_: AuditRequest) -> None:
    found = audit(request_)
    with duckdb.connect(found.warehouse, read_only=True) as connection:
        arms = connection.execute("SELECT arm, list_distinct(list(token_id)) FROM impact_token GROUP BY 1").fetchall()
        worst = connection.execute(
            "SELECT token_id FROM sticky_validation WHERE protocol = 'retention' AND role = 'candidate' "
            "AND q_value IS NOT NULL ORDER BY loss DESC, token_id LIMIT 2"
        ).fetchall()
    tokens = {arm: set(found) for arm, found in arms}
    assert tokens.keys() == {"definition", "ordinary", "retention"}
    assert tokens["retention"] == {token for (token,) in worst}
    assert not tokens["ordinary"] & (tokens["definition"] | tokens["retention"])


@pytest.mark.slow
def test_the_command_on_tokens_of_ones_own(
    embaudit_here: Embaudit, tiny_checkpoint: Path, collection: Path, tmp_path: Path
) -> None:
    asked = ("impact", str(tiny_checkpoint), "--data", str(collection), "--warehouse", str(tmp_path / "w.duckdb"))
    done = embaudit_here(*asked, "--tokens", "river,[PAD]", "--tokens-per-arm", "1", "--documents", "all")
    assert done.returncode == 0, done.stderr
    for expected in ("Impact of sticky tokens", "nDCG@10, retrieval: 24 items, 40 texts", "Given tokens: ", *DROPPED):
        assert expected in done.stdout
    assert "Sticky tokens\n" not in done.stdout, "nothing was searched for"
    again = embaudit_here(*asked, "--tokens", "river,[PAD]", "--tokens-per-arm", "1", "--documents", "all", "--json")
    assert json.loads(again.stdout)["rows"]["impact_token"] == 3 * 2 * 3
    for name in ("impact", "impact-tokens", "impact-queries"):
        rows = json.loads(embaudit_here("query", name, "--format", "json", *asked[-2:]).stdout)
        assert {row["corpus"] for row in rows} == {"retrieval"}, name


def test_what_the_command_refuses(embaudit_here: Embaudit, tiny_checkpoint: Path, collection: Path) -> None:
    for arguments, expected in {
        ("--data", "a", "--corpus", "retrieval=b"): "both give the collection",
        ("--corpus", "wikipedia=sample"): "There is no task for a corpus 'wikipedia'",
        ("--documents", "few"): "neither 'all' nor a number of at least 4",
        ("--data", str(collection), "--tokens", "xyzzy"): "'xyzzy' is not a token",
    }.items():
        refused = embaudit_here("impact", str(tiny_checkpoint), *arguments)
        assert refused.returncode == 2, arguments
        assert expected in refused.stderr


def test_a_measure_needs_those_that_it_builds_on(home: Path, tiny_checkpoint: Path) -> None:
    with pytest.raises(UsageError, match="builds on sticky, which this audit leaves out") as refused:
        audit(AuditRequest(checkpoint=str(tiny_checkpoint), measures=["impact"]))
    assert "--measures sticky,impact" in refused.value.next_step
