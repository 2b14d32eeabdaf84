"""``embaudit against``: the pairs of largest SOCM between a text and a corpus, as ``given_pairs`` computes them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from tiny import tiny_bert

from embaudit.checkpoint import Encoder, LoadOptions, load_checkpoint
from embaudit.cli.against import against
from embaudit.measures.socm.clouds import clouds_of
from embaudit.measures.socm.pairs import given_pairs
from embaudit.words.errors import UsageError

PASSAGES = ["the river town", "a small bird", "the law court of the state", "rain snow and ice", "iron and gold"]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_bert(tmp_path_factory.mktemp("against") / "bert")


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "texts.txt"
    path.write_text("\n".join(PASSAGES) + "\n")
    return path


def test_the_largest_come_first_and_are_right(checkpoint: Path, corpus: Path) -> None:
    texts = ["a great king", "water"]
    arguments = [str(checkpoint), *texts, "--corpus", f"wikipedia={corpus}", "--top", "3", "--json", "--device", "cpu"]
    done = CliRunner().invoke(against, arguments, catch_exceptions=False)
    rows = json.loads(done.stdout)
    encoder = Encoder(load_checkpoint(str(checkpoint), LoadOptions(device="cpu")))
    clouds = dict(enumerate(clouds_of(encoder.token_embeddings([*texts, *PASSAGES]))[0]))
    for place, text in enumerate(texts):
        own = [row for row in rows if row["text"] == text]
        wanted = given_pairs(clouds, [place] * len(PASSAGES), range(len(texts), len(clouds))).socm
        assert [row["socm"] for row in own] == pytest.approx(sorted(wanted, reverse=True)[:3])
        assert [row["passage"] for row in own] == [PASSAGES[row["position"]] for row in own]


def test_the_page_names_text_and_corpus(checkpoint: Path, corpus: Path) -> None:
    arguments = [str(checkpoint), "a great king", "--corpus", f"wikipedia={corpus}", "--device", "cpu"]
    done = CliRunner().invoke(against, arguments, catch_exceptions=False)
    assert "'a great king' against 5 texts of wikipedia" in done.stdout
    assert "rain snow and ice" in done.stdout
    with corpus.open("ab") as file:
        file.write("an é cut short".encode("latin1"))
    for given, shown in (((), "stdout"), (("--json",), "stderr")):
        done = CliRunner().invoke(against, [*arguments, *given], catch_exceptions=False)
        assert "6 rows read: 5 kept, 0 duplicate, 0 blank, 0 broken, 1 not UTF-8" in getattr(done, shown)


def test_a_corpus_of_pairs_is_refused(checkpoint: Path) -> None:
    with pytest.raises(UsageError, match="holds pairs"):
        CliRunner().invoke(against, [str(checkpoint), "a", "--corpus", "sts=sample"], catch_exceptions=False)
