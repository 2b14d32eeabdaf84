"""What servers are reported to do wrong, each done to the packaged checkpoint, and what ``parity`` should call it.

They are written with the encoder and transformers alone, not with what ``parity`` searches by.
"""

from __future__ import annotations

import base64
import html
import json
import re
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from tokenizers.normalizers import BertNormalizer

from benchmarks.serving.server import Encode, Refusal, Served
from embaudit.checkpoint import Checkpoint, Encoder, LoadOptions, load_checkpoint

GOOD = "packaged:all-MiniLM-L6-v2"
# The model computes one request at a time, as most servers do.
ONE_AT_A_TIME = threading.Lock()


@dataclass(frozen=True)
class Serving:
    """One way to serve the checkpoint.

    Attributes:
        make: from the good checkpoint's folder.
        called: what the verdict's sentence must contain if it is a fault; a regular expression.
        is_fault: whether it is another function.
        api: the API that it speaks.
    """

    name: str
    make: Callable[[Checkpoint], Served | Encode]
    called: str = ""
    is_fault: bool = True
    api: str = "openai"

    def served(self, checkpoint: Checkpoint) -> Served:
        made = self.make(checkpoint)
        served = made if isinstance(made, Served) else Served(made)
        return replace(served, api=self.api)


def faithful(checkpoint: Checkpoint) -> Encode:
    # Who compares asks the same again and again: it computes each request once.
    known: dict[tuple[str, ...], np.ndarray] = {}

    def encode(texts: list[str]) -> np.ndarray:
        with ONE_AT_A_TIME:
            if (asked := tuple(texts)) not in known:
                known[asked] = Encoder(checkpoint).encode_texts(texts)
            return known[asked].copy()

    return encode


def reading(change: Callable[[str], str]) -> Callable[[Checkpoint], Encode]:
    """Texts that are changed before they are read."""

    def make(checkpoint: Checkpoint) -> Encode:
        encode = faithful(checkpoint)
        return lambda texts: encode([change(text) for text in texts])

    return make


def loaded(**options: object) -> Callable[[Checkpoint], Encode]:
    """The checkpoint, loaded otherwise."""
    return lambda _: faithful(load_checkpoint(GOOD, LoadOptions(device="cpu", **options)))  # type: ignore[arg-type]


def with_normalizer(lowercase: bool, strip_accents: bool) -> Callable[[Checkpoint], Encode]:
    def make(_: Checkpoint) -> Encode:
        import copy

        checkpoint = load_checkpoint(GOOD, LoadOptions(device="cpu"))
        tokenizer = copy.deepcopy(checkpoint.tokenizer)
        tokenizer.backend_tokenizer.normalizer = BertNormalizer(lowercase=lowercase, strip_accents=strip_accents)
        return faithful(replace(checkpoint, tokenizer=tokenizer))

    return make


def vectors(change: Callable[[np.ndarray], np.ndarray]) -> Callable[[Checkpoint], Encode]:
    """Vectors that are changed after they are made."""

    def make(checkpoint: Checkpoint) -> Encode:
        encode = faithful(checkpoint)
        return lambda texts: change(encode(texts))

    return make


def states_of(checkpoint: Checkpoint, ids: Sequence[int], layer: int = -1) -> np.ndarray:
    """(n, d) states of one sequence."""
    batch = torch.tensor([list(ids)])
    with torch.inference_mode():
        given = checkpoint.model(input_ids=batch, attention_mask=torch.ones_like(batch), output_hidden_states=True)
    return np.asarray(given.hidden_states[layer][0].numpy())


def each(vector: Callable[[Checkpoint, str], np.ndarray]) -> Callable[[Checkpoint], Encode]:
    """Texts one at a time."""

    def make(checkpoint: Checkpoint) -> Encode:
        def encode(texts: list[str]) -> np.ndarray:
            with ONE_AT_A_TIME:
                return np.array([vector(checkpoint, text) for text in texts])

        return encode

    return make


def unit(row: np.ndarray) -> np.ndarray:
    return np.asarray(row / max(float(np.linalg.norm(row)), 1e-12))


def of_ids(checkpoint: Checkpoint, content: Sequence[int], layer: int = -1) -> np.ndarray:
    """The mean of the states of a text's ids between [CLS] and [SEP]."""
    return unit(states_of(checkpoint, [101, *content, 102], layer).mean(0))


def content_of(checkpoint: Checkpoint, text: str) -> list[int]:
    return list(checkpoint.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"])


def windows(size: int) -> Callable[[Checkpoint, str], np.ndarray]:
    def vector(checkpoint: Checkpoint, text: str) -> np.ndarray:
        content = content_of(checkpoint, text)
        parts = [content[start : start + size - 2] for start in range(0, len(content), size - 2)] or [[]]
        return unit(np.mean([of_ids(checkpoint, part) for part in parts], axis=0))

    return vector


def padded(attends: bool) -> Callable[[Checkpoint], Encode]:
    """A batch whose padding is pooled, and perhaps attended to."""

    def make(checkpoint: Checkpoint) -> Encode:
        def encode(texts: list[str]) -> np.ndarray:
            given = checkpoint.tokenizer(
                texts, padding=True, truncation=True, max_length=256, return_tensors="pt", verbose=False
            )
            if attends:
                given["attention_mask"] = torch.ones_like(given["attention_mask"])
            with ONE_AT_A_TIME, torch.inference_mode():
                states = checkpoint.model(**given).last_hidden_state
            return np.array([unit(row) for row in states.mean(1).numpy()])

        return encode

    return make


def in_another_order(checkpoint: Checkpoint) -> Encode:
    """A server that sorts a batch by length, and forgets to sort back."""
    encode = faithful(checkpoint)
    return lambda texts: encode(sorted(texts, key=len))


def with_state(checkpoint: Checkpoint) -> Encode:
    """What was answered before moves what is answered now."""
    encode, last = faithful(checkpoint), [np.zeros(checkpoint.dimension)]

    def answer(texts: list[str]) -> np.ndarray:
        found = np.array([unit(row + 0.3 * last[0]) for row in encode(texts)])
        last[0] = found[-1]
        return found

    return answer


def cached_by_start(checkpoint: Checkpoint) -> Encode:
    """A cache whose key is the first thirty characters."""
    encode, cache = faithful(checkpoint), dict[str, np.ndarray]()

    def answer(texts: list[str]) -> np.ndarray:
        return np.array([cache.setdefault(text[:30], encode([text])[0]) for text in texts])

    return answer


def with_dropout(checkpoint: Checkpoint) -> Encode:
    encode, random = faithful(checkpoint), np.random.default_rng(0)
    return lambda texts: encode(texts) * (random.random((len(texts), checkpoint.dimension)) > 0.1) / 0.9


def mixed_up_in_parallel(checkpoint: Checkpoint) -> Encode:
    """Requests that come together get one of them answered."""
    encode, waiting, lock = faithful(checkpoint), list[list[str]](), threading.Lock()

    def answer(texts: list[str]) -> np.ndarray:
        with lock:
            waiting.append(texts)
        time.sleep(0.02)
        with lock:
            others = [one for one in waiting if one is not texts and len(one) == len(texts)]
        found = encode(others[0] if others else texts)
        with lock:
            waiting.remove(texts)
        return found

    return answer


def nan_for(pattern: str) -> Callable[[Checkpoint], Encode]:
    def make(checkpoint: Checkpoint) -> Encode:
        encode = faithful(checkpoint)

        def answer(texts: list[str]) -> np.ndarray:
            found = encode(texts)
            found[[bool(re.search(pattern, text)) for text in texts]] = np.nan
            return found

        return answer

    return make


def failing_on(is_bad: Callable[[str], bool], status: int) -> Callable[[Checkpoint], Encode]:
    def make(checkpoint: Checkpoint) -> Encode:
        encode = faithful(checkpoint)

        def answer(texts: list[str]) -> np.ndarray:
            if any(is_bad(text) for text in texts):
                raise Refusal(status, "cannot encode this")
            return encode(texts)

        return answer

    return make


def without_blank_texts(checkpoint: Checkpoint) -> Encode:
    """Blank texts are dropped from a batch, so that it has fewer vectors than texts."""
    encode = faithful(checkpoint)
    return lambda texts: encode([text for text in texts if text.strip()] or texts)


def rounded_weights(bits: int) -> Callable[[Checkpoint], Encode]:
    def make(_: Checkpoint) -> Encode:
        from benchmarks.defects.copies import tensors

        with TemporaryDirectory() as place:
            folder = Path(place) / "rounded"
            from benchmarks.defects.copies import link
            from embaudit.checkpoint.reference import resolve

            link(resolve(GOOD).folder, folder)

            def change(found: dict[str, torch.Tensor]) -> None:
                for name, tensor in found.items():
                    if tensor.ndim == 2 and tensor.is_floating_point():
                        step = tensor.abs().amax(1, keepdim=True).clamp(min=1e-12) / (2 ** (bits - 1) - 1)
                        found[name] = (tensor / step).round() * step

            tensors(change)(folder)
            return faithful(load_checkpoint(str(folder), LoadOptions(device="cpu")))

    return make


def of_another_vocabulary(checkpoint: Checkpoint) -> Encode:
    """A client that sends ids of another tokenizer."""
    shift = 1_000

    def vector(_: Checkpoint, text: str) -> np.ndarray:
        ids = [
            token if token < 2_000 else 2_000 + (token - 2_000 + shift) % 28_000
            for token in content_of(checkpoint, text)
        ]
        return of_ids(checkpoint, ids[:254])

    return each(vector)(checkpoint)


def in_the_other_segment(checkpoint: Checkpoint) -> Encode:
    def vector(_: Checkpoint, text: str) -> np.ndarray:
        ids = torch.tensor([[101, *content_of(checkpoint, text)[:254], 102]])
        with torch.inference_mode():
            given = checkpoint.model(input_ids=ids, token_type_ids=torch.ones_like(ids))
        return unit(given.last_hidden_state[0].numpy().mean(0))

    return each(vector)(checkpoint)


def base64_as(dtype: str) -> Callable[[Checkpoint], Served]:
    return lambda checkpoint: Served(faithful(checkpoint), as_bytes=lambda row: row.astype(dtype).tobytes())


def as_lists(body: bytes) -> bytes:
    """The answer of a server that does not know base64, and gives numbers whatever was requested."""
    answer = json.loads(body)
    for one in answer["data"]:
        if isinstance(one["embedding"], str):
            one["embedding"] = np.frombuffer(base64.b64decode(one["embedding"]), "<f4").tolist()
    return json.dumps(answer).encode()


FAULTS: tuple[Serving, ...] = (
    Serving("cls pooling", loaded(pooling="cls"), r"takes cls instead of mean"),
    Serving("last-token pooling", loaded(pooling="lasttoken"), r"takes lasttoken instead of mean"),
    Serving("max pooling", loaded(pooling="max"), r"takes max instead of mean", api="tei"),
    Serving("weighted mean", loaded(pooling="weightedmean"), r"takes weightedmean instead of mean"),
    Serving(
        "Normalize skipped",
        each(lambda c, text: states_of(c, [101, *content_of(c, text)[:254], 102]).mean(0)),
        r"skips Normalize",
    ),
    Serving(
        "special tokens left out of the mean",
        each(lambda c, text: unit(states_of(c, [101, *(content_of(c, text)[:254] or [102]), 102])[1:-1].mean(0))),
        r"leaves special tokens out of the mean",
    ),
    Serving(
        "the layer before the last",
        each(lambda c, text: of_ids(c, content_of(c, text)[:254], -2)),
        r"layer before the last",
    ),
    Serving("lower-casing lost", with_normalizer(False, True), r"does not lower-case"),
    Serving("lower-casing lost, accents kept", with_normalizer(False, False), r"does not lower-case or strip accents"),
    Serving("accents kept", with_normalizer(True, False), r"keeps accents"),
    Serving(
        "no special tokens",
        each(lambda c, text: unit(states_of(c, content_of(c, text)[:256] or [102]).mean(0))),
        r"adds no special tokens",
    ),
    Serving(
        "start token left out",
        each(lambda c, text: unit(states_of(c, [*content_of(c, text)[:254], 102]).mean(0))),
        r"leaves out the start token",
    ),
    Serving(
        "special tokens twice",
        each(lambda c, text: unit(states_of(c, [101, 101, *content_of(c, text)[:252], 102, 102]).mean(0))),
        r"adds the special tokens twice",
    ),
    Serving("a prompt that training never used", reading(lambda text: f"query: {text}"), r"puts 'query: ' before"),
    Serving("a prompt of our own", reading(lambda text: f"Find what this means: {text}"), r"No way|Closest"),
    Serving("cut at 128 tokens", loaded(max_length=128), r"reads 128 tokens"),
    Serving("cut at 100 words", reading(lambda text: " ".join(text.split(" ")[:100])), r"reads 100 words"),
    Serving("cut at 1 000 characters", reading(lambda text: text[:1_000]), r"reads 1,000 characters"),
    Serving("every token in the other segment", in_the_other_segment, r"the other segment"),
    Serving("cut at 512 tokens", loaded(max_length=512), r"reads 512 tokens|cuts no text", api="ollama"),
    Serving(
        "cut on the left", each(lambda c, text: of_ids(c, content_of(c, text)[-254:])), r"reads the last 256 tokens"
    ),
    Serving("windows averaged", each(windows(256)), r"windows of 256 tokens"),
    # Its tokenizer lower-cases by itself, but leaves special tokens in texts as they are.
    Serving("lower-cased first", reading(str.lower), r"lower-cases texts"),
    Serving("first line only", reading(lambda text: text.split("\n")[0]), r"first line"),
    Serving("UTF-8 read as Latin-1", reading(lambda text: text.encode().decode("latin-1")), r"UTF-8 as Latin-1"),
    Serving("not ASCII dropped", reading(lambda text: text.encode("ascii", "ignore").decode()), r"not ASCII"),
    Serving(
        "punctuation dropped",
        reading(lambda text: re.sub(r"[^\w\s]", "", text)),
        r"letters, digits and white space only",
    ),
    Serving("HTML escaped", reading(lambda text: html.escape(text, quote=False)), r"escapes HTML"),
    Serving("half the dimensions", vectors(lambda rows: rows[:, :192]), r"first 192 of 384 dimensions"),
    Serving(
        "half the dimensions, normalised again",
        vectors(lambda rows: np.array([unit(row[:192]) for row in rows])),
        r"first 192 of 384 dimensions.*normalises",
    ),
    Serving("vectors ten times as long", vectors(lambda rows: rows * 10), r"another length"),
    Serving("int8 vectors", vectors(lambda rows: np.round(rows * 127)), r"int8 vectors"),
    Serving("binary vectors", vectors(lambda rows: (rows > 0).astype(float)), r"binary vectors"),
    Serving("weights rounded to 4 bits", rounded_weights(4), r"No way|Closest"),
    Serving("base64 big-endian", base64_as(">f4"), r"big-endian float32"),
    Serving("base64 of float64", base64_as("<f8"), r"encodes float64"),
    Serving("padding counted in the mean", padded(False), r"counts padding in the mean"),
    Serving("padding attended to", padded(True), r"attends to padding and counts"),
    Serving("a batch in another order", in_another_order, r"in another order"),
    Serving("another request's state", with_state, r"a second time|No way|Closest"),
    Serving("a cache by the first characters", cached_by_start, r"No way|Closest|second time"),
    Serving("dropout on", with_dropout, r"a second time|No way|Closest"),
    Serving("parallel requests mixed up", mixed_up_in_parallel, r"while 7 others are"),
    Serving("NaN for emoji", nan_for("[\U0001f300-\U0001faff]"), r"NaN"),
    Serving("an error on long texts", failing_on(lambda text: len(text) > 2_000, 500), r"no vector"),
    Serving("an error on control characters", failing_on(lambda text: "\x00" in text, 500), r"no vector"),
    Serving("fewer vectors than texts", without_blank_texts, r"vectors for"),
    Serving("another tokenizer's ids", of_another_vocabulary, r"No way|Closest"),
)
HARMLESS: tuple[Serving, ...] = (
    Serving("OpenAI's API", faithful, is_fault=False),
    Serving("TEI's API", lambda checkpoint: Served(faithful(checkpoint), most=8), is_fault=False, api="tei"),
    Serving("ollama's API", faithful, is_fault=False, api="ollama"),
    Serving("bfloat16", loaded(dtype="bfloat16"), is_fault=False),
    Serving("float16", loaded(dtype="float16"), is_fault=False),
    Serving("empty texts refused", failing_on(lambda text: not text.strip(), 400), is_fault=False),
    Serving("texts beyond the limit refused", failing_on(lambda text: len(text.split()) > 230, 413), is_fault=False),
    Serving("newlines replaced, as its tokenizer does", reading(lambda text: text.replace("\n", " ")), is_fault=False),
    Serving("vectors rounded to six digits", vectors(lambda rows: np.round(rows, 6)), is_fault=False),
    Serving("weights rounded to 16 bits", rounded_weights(16), is_fault=False),
)
