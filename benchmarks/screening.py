"""Screening sentences for severe tokens, beside the tokenizer alone and the reader alone on the same sentences."""

from __future__ import annotations

import re
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.measured import REAL_SENTENCES, Measured, sentences
from embaudit.checkpoint.weightless import load_tokenizer_alone
from embaudit.remedies.screening.density import MIN_SCORE, OrdinaryRate, encoder_of_tokens, in_batches
from embaudit.remedies.screening.screen import FileRows, Screen, stream_texts

SENTENCES = 12_000
ROUNDS = 5
ABSTRACTS = REAL_SENTENCES.parents[1] / "retrieval/scifact/corpus.jsonl.gz"
# Severe in audits of the checkpoint; every tenth sentence ends with one.
TOKENS = ("##ⁱ", "ু", "龸", "ན", "糹", "ᆷ")


def run() -> Iterator[Measured]:
    tokenizer = load_tokenizer_alone("packaged:all-MiniLM-L6-v2").tokenizer
    ids = tokenizer.get_vocab()
    losses = {ids[token]: 0.5 for token in TOKENS if token in ids}
    found, origin = sentences(SENTENCES)
    if ABSTRACTS.is_file():
        # Distinct ones: words that come again are remembered, and repeated sentences would flatter.
        abstracts = (text for _, text in stream_texts(ABSTRACTS, FileRows()))
        found += [part for text in abstracts for part in re.split(r"(?<=\.)\s+", text) if part.strip()]
        origin += " and SciFact"
    lines = [f"{text} 糹" if place % 10 == 0 else text for place, text in enumerate(dict.fromkeys(found))]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sentences.txt"
        path.write_text("\n".join(lines), encoding="utf-8")

        def screen() -> None:
            # Anew each time: nothing is remembered.
            whole = Screen(encoder_of_tokens(tokenizer), losses, limit=254, min_score=MIN_SCORE, shown=20)
            whole.screen([path], OrdinaryRate(100_000, 10))

        def tokenise() -> None:
            # Whole texts, as the tokenizer itself takes them, from memory.
            for batch in in_batches(enumerate(lines)):
                for one in tokenizer.backend_tokenizer.encode_batch_fast([text for _, text in batch]):
                    one.ids  # noqa: B018

        def read() -> None:
            for _ in stream_texts(path, FileRows()):
                pass

        works = {"screen": screen, "tokenizer": tokenise, "reader": read}
        # Side by side: what else runs on the machine slows all three.
        seconds = [{name: _seconds(work) for name, work in works.items()} for _ in range(ROUNDS)]
    rates = {name: sorted(len(lines) / one[name] for one in seconds) for name in works}
    said = {name: f"{statistics.median(rate):,.0f} ({rate[0]:,.0f}–{rate[-1]:,.0f})" for name, rate in rates.items()}
    share = statistics.median(one["tokenizer"] / one["screen"] for one in seconds)
    yield Measured(
        f"screening {len(lines):,} distinct sentences of {origin} from a text file, sentences/s; the tokenizer alone "
        "on whole texts; the reader alone (`screening`)",
        f"{said['screen']}; {said['tokenizer']}; {said['reader']}; the tokenizer alone takes {share:.1f} × as long",
        "≥ 20 000",
    )


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
