"""The measures that put copies of tokens into tasks, or other temperatures: without Prefect, against own counting."""

from __future__ import annotations

import json
from math import log2
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from judged_collections import write_collection
from measure_alone import run_of, tables_of
from scipy.stats import spearmanr
from tiny import ENGLISH

from embaudit.checkpoint import Checkpoint, Encoder
from embaudit.corpora.judged import load_judged
from embaudit.corpora.load import load_corpus
from embaudit.measures.impact.arms import poison, poisoned_half
from embaudit.measures.run import Run
from embaudit.measures.sticky.inspect import find_token
from embaudit.steps.corpora import stage_corpus
from embaudit.words.errors import UsageError

pytestmark = pytest.mark.usefixtures("one_thread")
WORDS = ENGLISH.split()
SCALES = {"five": 5, "one": 1}
GENERATOR = np.random.default_rng(0)
DOCUMENTS = [" ".join(map(str, GENERATOR.choice(WORDS, 25))) for _ in range(40)]
QUERIES = [" ".join(text.split()[:5]) for text in DOCUMENTS[:24]]
LABELLED = [{"text": f"{WORDS[i % 2]} {WORDS[i + 2]} {WORDS[i % 7]}", "label": "ab"[i % 2]} for i in range(40)]
PAIRS = {
    name: [(top * i / 20, f"{WORDS[i]} {name}", f"{WORDS[i + 1]} {WORDS[i + 2]}") for i in range(20)]
    for name, top in SCALES.items()
}


def run_with(checkpoint: Checkpoint, folder: Path, name: str, *corpora: str, **settings: Any) -> Run:
    """A run of a measure on these of the corpora above."""
    run = run_of(checkpoint, folder, name, corpora=corpora, resamples=100, **settings)
    (folder / "sts").mkdir()
    for one, pairs in PAIRS.items():
        (folder / "sts" / f"{one}.tsv").write_text("".join(f"{score}\t{a}\t{b}\n" for score, a, b in pairs))
    (folder / "labelled.jsonl").write_text("\n".join(map(json.dumps, LABELLED)))
    judged = load_judged(str(write_collection(folder / "beir", DOCUMENTS, QUERIES)))
    sources = {"sts": folder / "sts", "longdocs": folder / "labelled.jsonl"}
    given = [load_corpus(one, str(sources[one])) for one in corpora if one in sources]
    given += [judged.documents, judged.queries] if "retrieval" in corpora else []
    return Run(**{**run.__dict__, "corpora": {one.name: stage_corpus(one, run.staging) for one in given}})


def unit(vectors: np.ndarray) -> np.ndarray:
    return np.asarray(vectors / np.linalg.norm(vectors.astype(float), axis=1, keepdims=True))


def ndcg(documents: np.ndarray, queries: np.ndarray) -> float:
    """Of queries that have one relevant document, in the same place."""
    cosines = unit(queries) @ unit(documents).T
    ranks = [1 + int((of_query > of_query[place]).sum()) for place, of_query in enumerate(cosines)]
    return float(np.mean([1 / log2(rank + 1) if rank <= 10 else 0.0 for rank in ranks]))


def spearman(encoder: Encoder, name: str) -> float:
    first, second = (unit(encoder.encode_texts([str(pair[side]) for pair in PAIRS[name]])) for side in (1, 2))
    return float(spearmanr((first * second).sum(axis=1), [score for score, *_ in PAIRS[name]]).statistic)


def test_impact_is_that_of_texts_with_copies(tiny: Checkpoint, tmp_path: Path) -> None:
    run = run_with(
        *(tiny, tmp_path, "impact", "retrieval", "longdocs", "sts"),
        **{"tokens": ("river", "[unused0]", "river"), "tokens_per_arm": 2, "starts": 1, "texts": 40},
    )
    tables = tables_of(run, "impact")
    encoder = Encoder(tiny)
    river = find_token(tiny, "river")
    asked, clean = encoder.encode_texts(QUERIES), encoder.encode_texts(DOCUMENTS)
    held = encoder.encode_ids(poison(encoder, DOCUMENTS, river, 0).sequences)
    mixed = np.where(poisoned_half(DOCUMENTS, 0)[:, None], held, clean)
    scores = {(row["metric"], row["arm"], row["poisoned"]): row for row in tables["impact"]}
    expected = {"clean": ndcg(clean, asked), "all": ndcg(held, asked), "half": ndcg(mixed, asked)}
    assert scores["ndcg_10", "clean", "none"]["score"] == pytest.approx(expected["clean"])
    for share in ("all", "half"):
        row = scores["ndcg_10", "given", share]
        assert row["score"] == pytest.approx(expected[share])
        assert row["change"] == pytest.approx(expected[share] - expected["clean"])
        ordinary = scores["ndcg_10", "ordinary", share]
        assert row["beyond"] == pytest.approx(row["score"] - ordinary["score"])
        assert (ordinary["beyond"], ordinary["tokens"], row["tokens"]) == (None, 2, 1)
        of_tokens = [
            one["score"]
            for one in tables["impact_token"]
            if (one["metric"], one["arm"], one["poisoned"]) == ("ndcg_10", "ordinary", share)
        ]
        assert ordinary["score"] == pytest.approx(np.mean(of_tokens))
    # Of pairs, both sides may hold copies; of a collection, its documents alone.
    sizes = {
        (row["metric"], row["poisoned"]): (row["items"], row["texts"], row["held"])
        for row in tables["impact"]
        if row["arm"] != "ordinary"
    }
    assert sizes == {
        (metric, share): (items, texts, 0 if share == "none" else texts if share == "all" else texts // 2)
        for metric, items, texts in (
            *((name, 24, 40) for name in ("mrr_10", "ndcg_10", "recall_10")),
            *((name, 40, 40) for name in ("accuracy", "v_measure")),
            ("spearman", 40, 80),
        )
        for share in ("none", "all", "half")
    }
    by_set = {(row["data_set"], row["arm"], row["poisoned"]): row for row in tables["impact_data_set"]}
    for name in SCALES:
        row = by_set[name, "clean", "none"]
        assert (row["score"], row["items"]) == (pytest.approx(spearman(encoder, name)), 20)
        change = by_set[name, "given", "all"]["score"] - row["score"]
        assert by_set[name, "given", "all"]["change"] == pytest.approx(change)
    assert len(by_set) == 2 * (1 + 2 * 2)
    of_query = [row for row in tables["impact_query"] if row["arm"] == "clean"]
    assert [row["query"] for row in of_query] == sorted(QUERIES, key=[row["query"] for row in of_query].index)
    assert np.mean([row["ndcg_10"] for row in of_query]) == pytest.approx(expected["clean"])
    with pytest.raises(UsageError, match=r"No text can contain '\[unused0\]': the tokenizer never produces it"):
        tables_of(
            run_with(tiny, _made(tmp_path / "none"), "impact", "retrieval", tokens=("[unused0]",), tokens_per_arm=1),
            "impact",
        )


def test_what_a_remedy_restores_is_the_clean_score(tiny: Checkpoint, tmp_path: Path) -> None:
    remedies = ("strip", "unk", "centring")
    run = run_with(tiny, tmp_path, "mitigation", "retrieval", tokens=("river", "town"), remedies=remedies, starts=1)
    tables = tables_of(run, "mitigation")
    rows = {row["remedy"]: row for row in tables["mitigation"] if row["metric"] == "ndcg_10"}
    assert list(rows) == ["none", *remedies]
    encoder = Encoder(tiny)
    asked, clean = encoder.encode_texts(QUERIES), encoder.encode_texts(DOCUMENTS)
    held = [
        encoder.encode_ids(poison(encoder, DOCUMENTS, find_token(tiny, name), 0).sequences)
        for name in ("river", "town")
    ]
    assert rows["none"]["clean"] == pytest.approx(ndcg(clean, asked))
    assert rows["none"]["poisoned"] == pytest.approx(np.mean([ndcg(one, asked) for one in held]))
    middle = unit(clean).mean(axis=0)
    centred = [ndcg(unit(one) - middle, unit(asked) - middle) for one in (clean, *held)]
    assert rows["centring"]["clean"] == pytest.approx(centred[0])
    assert rows["centring"]["poisoned"] == pytest.approx(np.mean(centred[1:]))
    # Texts with copies taken out are those without; what held the words itself is another text.
    assert rows["strip"]["poisoned"] == pytest.approx(rows["strip"]["clean"], abs=0.05)
    holding = sum(bool({"river", "town"} & {*text.split()}) for text in (*DOCUMENTS, *QUERIES))
    assert {name: row["touched"] for name, row in rows.items()} == {
        **{"none": 0, "strip": holding, "unk": holding, "centring": 64}
    }
    assert {(row["tokens"], row["items"], row["texts"]) for row in rows.values()} == {(2, 24, 64)}
    for name in remedies:
        for score in ("clean", "poisoned"):
            change = rows[name][score] - rows["none"][score]
            assert rows[name][f"{score}_change"] == pytest.approx(change, abs=1e-9)


def test_temperatures_are_searched_from_the_best_single_one(tiny: Checkpoint, tmp_path: Path) -> None:
    tables = tables_of(run_with(tiny, tmp_path, "tempscale", "sts", grid=(1.0, 0.5), by=("layer", "head")), "tempscale")
    assert {row["arm"] for row in tables["tempscale"]} >= {"none", "temperature", "chunk_average"}
    assert {row["task"] for row in tables["tempscale_choice"]} == {"sts"}
    parts = {"layer": 2, "head": 4}
    assert [row["part"] for row in tables["tempscale_search"]] == list(parts)
    for row in tables["tempscale_search"]:
        taus = [float(one) for one in row["taus"].split(",")]
        assert len(taus) == parts[row["part"]]
        assert {*taus} <= {1.0, 0.5}
        assert row["difference"] == pytest.approx(row["score_after"] - row["score_before"], abs=1e-9)
    # At τ = 1 they are the checkpoint's own vectors, bit for bit, and so they are in pieces, of which each text is one.
    texts = [str(pair[1]) for pairs in PAIRS.values() for pair in pairs]
    own = {vector.tobytes() for vector in Encoder(tiny).encode_texts(texts)}
    assert sum(row["vector"] in own for row in tables["tempscale_vectors"]) == 2 * len(texts)


def test_labelled_texts_have_three_tasks_at_each_temperature(tiny: Checkpoint, tmp_path: Path) -> None:
    settings = {"grid": (1.0, 0.5), "texts": 40, "folds": 2, "starts": 1}
    tables = tables_of(run_with(tiny, tmp_path, "tempscale", "longdocs", **settings), "tempscale")
    tasks = {"classification_knn", "classification_logistic", "clustering"}
    assert {row["task"] for row in tables["tempscale_choice"]} == tasks
    assert "tempscale_search" not in tables
    assert len(tables["tempscale_vectors"]) == 3 * 40


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder
