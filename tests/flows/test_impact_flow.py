"""Impact through the audit flow: the worst that the search finds and ordinary tokens, on all tasks; and the command."""

from __future__ import annotations

import json
from math import log2
from pathlib import Path

import duckdb
import numpy as np
import pytest
from commands import Embaudit
from judged_collections import write_collection
from planned import assert_planned
from scipy.stats import spearmanr
from small_audits import home_at
from tiny import ENGLISH

from embaudit.checkpoint import Encoder, LoadOptions, load_checkpoint
from embaudit.measures.impact.arms import poison, poisoned_half
from embaudit.measures.sticky.inspect import find_token
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


def ndcg(documents: np.ndarray, queries: np.ndarray) -> np.ndarray:
    """Of queries that have one relevant document, in the same place."""
    cosines = [documents @ query for query in queries]
    ranks = [1 + int((of_query > of_query[place]).sum()) for place, of_query in enumerate(cosines)]
    return np.array([1 / log2(rank + 1) if rank <= 10 else 0.0 for rank in ranks])


@pytest.mark.slow
def test_scores_are_those_of_texts_with_copies(outcome: AuditOutcome, tiny_checkpoint: Path, collection: Path) -> None:
    with duckdb.connect(outcome.warehouse, read_only=True) as connection:
        scores = {
            (arm, poisoned, token): score
            for arm, poisoned, token, score in connection.execute(
                "SELECT arm, poisoned, token_id, score FROM impact_token WHERE metric = 'ndcg_10' UNION ALL "
                "SELECT arm, poisoned, NULL, score FROM impact WHERE metric = 'ndcg_10'"
            ).fetchall()
        }
        by_query = connection.execute(
            "SELECT query, ndcg_10 FROM impact_query WHERE arm = 'clean' ORDER BY query"
        ).fetchall()
    encoder = Encoder(load_checkpoint(str(tiny_checkpoint), LoadOptions(device="cpu")))
    documents, queries = (
        [json.loads(line)["text"] for line in (collection / f"{name}.jsonl").read_text().splitlines()]
        for name in ("corpus", "queries")
    )
    asked, clean = encoder.encode_texts(queries), encoder.encode_texts(documents)
    gains = ndcg(clean, asked)
    assert scores["clean", "none", None] == pytest.approx(gains.mean(), abs=1e-9)
    assert by_query == [(text, pytest.approx(gain)) for text, gain in sorted(zip(queries, gains, strict=True))]
    river = find_token(encoder.checkpoint, "river")
    held = encoder.encode_ids(poison(encoder, documents, river, 0).sequences)
    assert scores["given", "all", river] == pytest.approx(ndcg(held, asked).mean(), abs=1e-9)
    mixed = np.where(poisoned_half(documents, 0)[:, None], held, clean)
    assert scores["given", "half", river] == pytest.approx(ndcg(mixed, asked).mean(), abs=1e-9)
    tokens = [
        score for (arm, poisoned, token), score in scores.items() if (arm, poisoned) == ("ordinary", "all") and token
    ]
    assert len(tokens) == 2
    assert scores["ordinary", "all", None] == pytest.approx(np.mean(tokens))


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
def test_pairs_are_ranked_within_their_data_set(outcome: AuditOutcome, tiny_checkpoint: Path, scored: Path) -> None:
    with duckdb.connect(outcome.warehouse, read_only=True) as connection:
        by_set = dict(connection.execute("SELECT data_set, score FROM impact_data_set WHERE arm = 'clean'").fetchall())
        (mean,) = connection.execute("SELECT score FROM impact WHERE metric = 'spearman' AND arm = 'clean'").fetchone()  # type: ignore[misc]
        cells = connection.execute("SELECT DISTINCT arm, poisoned, items FROM impact_data_set ORDER BY ALL").fetchall()
    encoder = Encoder(load_checkpoint(str(tiny_checkpoint), LoadOptions(device="cpu")))
    expected = {}
    for name in SCALES:
        rows = [line.split("\t") for line in (scored / f"{name}.tsv").read_text().splitlines()]
        first, second = (encoder.encode_texts([row[side] for row in rows]) for side in (1, 2))
        cosines = [a @ b / np.linalg.norm(a) / np.linalg.norm(b) for a, b in zip(first, second, strict=True)]
        expected[name] = spearmanr(cosines, [float(row[0]) for row in rows]).statistic
    assert by_set == pytest.approx(expected)
    assert mean == pytest.approx(np.mean(list(expected.values())))
    assert [(arm, poisoned) for arm, poisoned, _ in cells] == [
        ("clean", "none"),
        *((arm, poisoned) for arm in ("given", "ordinary") for poisoned in ("all", "half")),
    ]
    assert {items for *_, items in cells} == {20}


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
