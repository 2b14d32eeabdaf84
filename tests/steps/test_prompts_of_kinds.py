"""Queries and documents stand behind their own prompts wherever a measure has both.

The slow way is a checkpoint without prompts, given texts with the prompts written in front of them.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tiny import ENGLISH

from embaudit.checkpoint import Encoder, load_checkpoint
from embaudit.corpora.draw import Draw
from embaudit.corpora.load import load_corpus
from embaudit.measures.socm.clouds import token_cloud
from embaudit.measures.socm.pairs import given_pairs
from embaudit.measures.socm.steps.summary import socm_listed
from embaudit.measures.task_material import MATERIAL_SCHEMA
from embaudit.measures.tempscale import TempscaleSettings
from embaudit.measures.tempscale.steps.temperatures import tempscale_vectors
from embaudit.questions.audit import AuditRequest
from embaudit.steps.corpora import stage_corpus
from embaudit.steps.results import CheckpointSpec, stage_rows
from embaudit.steps.staging.stage import read_rows
from embaudit_flows.plan import plan_audit
from embaudit_tasks.steps import mined_pairs

QUERY, DOCUMENT, TEXT = "the gold: ", "an old town: ", "music "
WORDS = ENGLISH.split()
QUERIES = [" ".join(WORDS[3 * place : 3 * place + 3]) for place in range(12)]
PASSAGES = [" ".join(WORDS[(7 * place) % 100 : (7 * place) % 100 + 8]) for place in range(20)]


@pytest.fixture(scope="module")
def bare(tiny_checkpoint: Path) -> Encoder:
    return Encoder(load_checkpoint(str(tiny_checkpoint)))


@pytest.fixture
def spec(tiny_checkpoint: Path, home: Path) -> CheckpointSpec:
    asked = {"prompt": TEXT, "query_prompt": QUERY, "document_prompt": DOCUMENT}
    return plan_audit(AuditRequest(checkpoint=str(tiny_checkpoint), device="cpu", **asked)).spec


def behind(prompt: str, texts: list[str]) -> list[str]:
    return [prompt + text for text in texts]


def test_mining(spec: CheckpointSpec, bare: Encoder, tmp_path: Path) -> None:
    (mined,) = mined_pairs.compute(str(tmp_path), spec, QUERIES, PASSAGES, [[]] * len(QUERIES), 1)

    def nearest(query_prompt: str, document_prompt: str) -> list[str]:
        queries = bare.encode_texts(behind(query_prompt, QUERIES))
        passages = bare.encode_texts(behind(document_prompt, PASSAGES))
        return [PASSAGES[place] for place in (queries @ passages.T).argmax(axis=1)]

    found = [row["passage"] for row in read_rows([mined.path])]
    assert found == nearest(QUERY, DOCUMENT)
    assert found != nearest("", "")


def test_listed_pairs(spec: CheckpointSpec, bare: Encoder, tmp_path: Path) -> None:
    # The last passage is a query as well: behind another prompt it is another text.
    pairs = [*zip(QUERIES, PASSAGES, strict=False), (QUERIES[1], QUERIES[0])]
    source = tmp_path / "pairs.tsv"
    source.write_text("query\tnegative\n" + "".join(f"{query}\t{passage}\n" for query, passage in pairs))
    corpus = stage_corpus(load_corpus("msmarco-hard-negatives", str(source)), str(tmp_path))
    texts, listed = socm_listed.compute(str(tmp_path), spec, corpus, Draw(rows=len(pairs)), 0, len(pairs))
    written = [text for query, passage in pairs for text in (QUERY + query, DOCUMENT + passage)]
    clouds = {index: token_cloud(index, X) for index, X in bare.token_embeddings(written)}
    expected = given_pairs(clouds, range(0, len(written), 2), range(1, len(written), 2))
    found = sorted(read_rows([listed.path]), key=lambda row: row["position"])
    np.testing.assert_allclose([row["socm"] for row in found], expected.socm, atol=1e-6)
    assert texts.rows == len(set(written)) == 2 * len(QUERIES) + 1


@pytest.mark.parametrize(
    ("side", "prompt"), [("query", QUERY), ("document", DOCUMENT), ("first", TEXT), ("second", TEXT), ("text", TEXT)]
)
@pytest.mark.parametrize("in_pieces", [False, True])
def test_sides_of_the_temperatures(
    side: str, prompt: str, in_pieces: bool, spec: CheckpointSpec, bare: Encoder, tmp_path: Path
) -> None:
    row = {"side": side, "label": None, "tokens": 0}
    material = stage_rows(
        *(str(tmp_path), "tempscale", "0" * 16, "task_material"),
        [{**row, "place": place, "text": text} for place, text in enumerate(QUERIES)],
        MATERIAL_SCHEMA,
    )
    (made,) = tempscale_vectors.compute(
        str(tmp_path), spec, "retrieval", material, side, 1.0, in_pieces, TempscaleSettings()
    )
    vectors = [np.frombuffer(row["vector"], dtype=np.float32) for row in read_rows([made.path])]
    np.testing.assert_allclose(vectors, bare.encode_texts(behind(prompt, QUERIES)), atol=1e-6)
