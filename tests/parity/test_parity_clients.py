"""What parity says of clients: faithful ones, and ones that do each thing wrong before they ask."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from faulty_clients import CLIENTS, PAIRS, Encode, faithful
from some_rows import mostly_slow

from benchmarks.serving.server import Served, serving
from embaudit.checkpoint import Checkpoint
from embaudit.comparisons.parity.other import OtherCheckpoint
from embaudit.comparisons.parity.parity import ParityReport, compare_with
from embaudit.endpoint.recognise import open_endpoint
from embaudit.measures.quality.material import Material

if TYPE_CHECKING:
    from tiktoken import Encoding


def compared(checkpoint: Checkpoint, client: Encode) -> ParityReport:
    return compare_with(checkpoint, OtherCheckpoint(client), "a client", Material())


def test_a_faithful_client_is_the_same_function(spaced_checkpoint: Checkpoint, foreign_tokens: Encoding) -> None:
    assert compared(spaced_checkpoint, faithful(spaced_checkpoint)).line == "The same function."


BY_NAME = {client.name: client for client in (*CLIENTS, *PAIRS)}


@pytest.mark.parametrize("name", mostly_slow(BY_NAME, BY_NAME))
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


@pytest.mark.parametrize(
    ("batch", "said"),
    [
        (lambda texts: sorted(texts, key=len), "in another order, the shortest texts' first"),
        (lambda texts: sorted(texts, key=len, reverse=True), "in another order, the longest texts' first"),
        (sorted, "in another order, in that of the alphabet"),
        (lambda texts: [texts[-1], *texts[:-1]], r"in another order\."),
        (lambda texts: list(dict.fromkeys(texts)), "leaves out texts that a batch has had already"),
    ],
)
def test_what_is_done_to_a_batch_is_named(
    served_checkpoint: Checkpoint, batch: Callable[[list[str]], list[str]], said: str
) -> None:
    encode = faithful(served_checkpoint)
    with serving(Served(lambda texts: encode(batch(texts)))) as address, open_endpoint(address) as endpoint:
        endpoint.wait_at_most = 0
        report = compare_with(served_checkpoint, endpoint, address, Material())
    assert report.verdict == "another function"
    assert any(re.search(f"It .*{said}", finding.sentence) for finding in report.findings), report.findings
