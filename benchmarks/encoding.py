"""Encoding for the scan against sentence-transformers' ``encode``, on the same (text, token) work, side by side.

Work: 6 layers x 12·d² multiply-adds a token, d = 384: 21.2 MFLOP a token, 0.7 GFLOP for 33 tokens. The scan saves
what is not that: tokenizing every text anew, padding, small batches, copies to numpy.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator

import numpy as np
import torch

from benchmarks.measured import Measured, as_scanned, sentences
from embaudit.checkpoint import Encoder, load_checkpoint
from embaudit.checkpoint.precision import operations_per_second, widths_of
from embaudit.checkpoint.vocabulary import read_vocabulary
from embaudit.measures.sticky.insertion import make_draw

ROUNDS = 5
TOKENS = 512
COPIES = 8
FLOP_PER_TOKEN = 6 * 12 * 384**2 * 2


def run() -> Iterator[Measured]:
    from sentence_transformers import SentenceTransformer

    checkpoint = load_checkpoint("packaged:all-MiniLM-L6-v2")
    encoder = Encoder(checkpoint)
    rival = SentenceTransformer(str(checkpoint.resolved.folder), device=checkpoint.device)
    sentence = next(text for text in sentences(200)[0] if len(checkpoint.content_ids(text)) == 23)
    words = [
        entry for entry in read_vocabulary(checkpoint.tokenizer) if entry.category == "ok" and entry.origin == "word"
    ]
    # Texts that tokenize back to exactly the inserted ids: both sides then do the same work.
    draw = make_draw(checkpoint, sentence, "suffix", COPIES, 0)
    tokens = [
        entry
        for entry in words[5_000 : 5_000 + 3 * TOKENS]
        if checkpoint.with_special_tokens(checkpoint.content_ids(_text(sentence, entry.text)))
        == draw.insert(np.array([entry.token_id]))[0].tolist()
    ][:TOKENS]
    ids, texts = np.array([entry.token_id for entry in tokens]), [_text(sentence, entry.text) for entry in tokens]
    length = len(draw.template)

    def scan() -> np.ndarray:
        return encoder.encode_dense(torch.from_numpy(draw.insert(ids))).cpu().numpy()

    side = 2048
    A, B = (torch.randn(shape, device=checkpoint.device) for shape in ((side, 384), (384, 1536)))
    scanned = as_scanned(encoder)
    ours, theirs, large, gemm, fast = [], [], [], [], []
    for _ in range(ROUNDS + 1):
        ours.append(_seconds(scan))
        theirs.append(_seconds(lambda: rival.encode(texts, show_progress_bar=False)))
        large.append(_seconds(lambda: rival.encode(texts, batch_size=256, show_progress_bar=False)))
        fast.append(_seconds(lambda: scanned.encode_dense(torch.from_numpy(draw.insert(ids)))))
        gemm.append(_seconds(lambda: [A @ B for _ in range(40)]) / 40)
    difference = np.abs(scan() - rival.encode(texts, show_progress_bar=False)).max()
    rate = len(ids) / statistics.median(ours[1:])
    gflops = rate * length * FLOP_PER_TOKEN / 1e9
    peak = 2 * side * 384 * 1536 / statistics.median(gemm[1:]) / 1e9
    ratios = [b / a for a, b in zip(ours[1:], theirs[1:], strict=True)]
    large_ratios = [b / a for a, b in zip(ours[1:], large[1:], strict=True)]
    yield Measured(
        f"scan encodes, {length} tokens each",
        f"{rate:.0f} texts/s, {gflops:.0f} GFLOP/s = {gflops / peak:.0%} of a float32 product beside it ({peak:.0f})",
    )
    yield Measured(
        "scan against sentence-transformers `encode`, the same texts and tokens",
        f"{_spread(ratios)}; with its batch size raised to 256: {_spread(large_ratios)}; "
        f"largest difference {difference:.0e}",
        "≥ 2.5×, ≤ 1e-5",
    )
    dtype = str(scanned.checkpoint.model.dtype).removeprefix("torch.")
    fast_ratios = [b / a for a, b in zip(fast[1:], theirs[1:], strict=True)]
    yield Measured(
        f"the same in {dtype}, in which `auto` scans here",
        f"{len(ids) / statistics.median(fast[1:]):.0f} texts/s: {_spread(fast_ratios)}",
        "≥ 2.5×",
    )
    natural, origin = sentences(1_000)
    pairs = [
        (
            _seconds(lambda: encoder.encode_texts(natural)),
            _seconds(lambda: rival.encode(natural, show_progress_bar=False)),
        )
        for _ in range(ROUNDS)
    ]
    yield Measured(
        f"{len(natural)} sentences of {origin}, mixed lengths, from text: against sentence-transformers `encode`",
        f"{len(natural) / statistics.median(ours for ours, _ in pairs):.0f} texts/s; "
        f"{_spread([theirs / ours for ours, theirs in pairs])}",
    )
    widths = widths_of(checkpoint.resolved.folder / checkpoint.recipe.transformer_path)
    layer = [operations_per_second(checkpoint.device, "float32", widths) / 1e9 for _ in range(ROUNDS)]
    attention = 6 * 4 * length * 384
    whole = [len(ids) * length * (FLOP_PER_TOKEN + attention) / one / 1e9 for one in ours[1:]]
    yield Measured(
        "rate of one layer, from which audits say how long they take; of the scan, attention included",
        f"{statistics.median(layer):.0f} GFLOP/s ({min(layer):.0f}–{max(layer):.0f}); "
        f"{statistics.median(whole):.0f} ({min(whole):.0f}–{max(whole):.0f})",
    )
    rates = []
    for budget in (1_024, 2_048, 4_096, 8_192):
        sized = Encoder(checkpoint, tokens_per_batch=budget)
        batch = torch.from_numpy(draw.insert(ids))
        seconds = statistics.median(_seconds(lambda: sized.encode_dense(batch)) for _ in range(3))  # noqa: B023
        rates.append(f"{budget}: {len(ids) / seconds:.0f}")
    yield Measured(f"texts/s by tokens a batch, {length} tokens each", ", ".join(rates))


def _text(sentence: str, word: str) -> str:
    return f"{sentence} {' '.join([word] * COPIES)}"


def _seconds(work: object) -> float:
    started = time.perf_counter()
    work()  # type: ignore[operator]
    return time.perf_counter() - started


def _spread(ratios: list[float]) -> str:
    return f"{statistics.median(ratios):.1f}× ({min(ratios):.1f}–{max(ratios):.1f})"
