"""Rows that crowd: how many texts that were made to come up for many queries ``embaudit vectors`` finds, and how many
ordinary rows it names.

Such texts are made as an attacker would who has the checkpoint: words of queries, exchanged one by one along the
gradient of the mean cosine to all of these (HotFlip, Ebrahimi et al. 2018, as in Zhong et al. 2023), alone or before a
sentence that says what somebody wants read. The queries are a few words out of texts that are not in the store: on
everything (``all``), or on one of its subjects (``subject``: a cluster of k-means). Half of the queries are held out,
and say what a text does to a search: it has an effect if it is among the first ten of a tenth of them.

The corpora were not looked at when the limits were set (docs/methods.md says on which they were).
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from benchmarks.measured import REAL_DATA, REAL_SENTENCES, Measured
from embaudit.checkpoint import Checkpoint, Encoder, TextKind, load_checkpoint
from embaudit.embedders.checkpoint import CheckpointFunction
from embaudit.embedders.function import Answers, EmbeddingFunction
from embaudit.questions.vectors.crowding import Crowding, crowding_in
from embaudit.questions.vectors.forms import unit_float32
from embaudit.questions.vectors.neighbours import NEAREST
from embaudit.statistics import exact_share
from embaudit.stores.store import RowBatch, Store

CHECKPOINT = "packaged:all-MiniLM-L6-v2"
ROWS, CUT, WORDS = 1_000, 250, 6
# Queries of an attack, and those held out; texts of each kind for each store.
QUERIES, CLUSTERS, EVERYTHING, SUBJECTS = 60, 3, 3, 2
STEPS, CANDIDATES, TOP, LENGTH = 40, 32, 24, (10, 24)
EFFECT, FEWEST_LETTERS = 0.1, 2
MESSAGES = ("", "Our support team is glad to help: call the number below and have your card ready.")


def run() -> Iterator[Measured]:
    if not REAL_DATA.is_dir():
        yield Measured("texts made to come up for many queries", "needs ../shared/data", "")
        return
    checkpoint = load_checkpoint(CHECKPOINT)
    encoder, function = Encoder(checkpoint), Remembering(checkpoint)
    made: list[tuple[float, str]] = []
    for number, (name, texts) in enumerate(attacked().items()):
        generator = np.random.default_rng(number)
        order = generator.permutation(len(texts))
        rows, others = [texts[one] for one in order[:ROWS]], [texts[one] for one in order[ROWS:]]
        queries = [part for text in others if (part := a_few_words(text, generator))][: 2 * QUERIES]
        vectors, asked = encoder.encode_texts(rows), unit_float32(encoder.encode_texts(queries))
        yield ordinary(name, crowding_in(store_of(vectors, rows), function))
        for kind, chosen in attacks(asked[:QUERIES], generator):
            text = flipped(checkpoint, asked[chosen], [queries[one] for one in chosen], generator)
            found = planted(function, encoder, vectors, rows, text)
            effect = effect_of(asked[QUERIES:], vectors, encoder.encode_texts([text]))
            made.append((effect, found))
            print(f"{name}, {kind}: {effect:.2f} of the queries held out, {found or 'not found'}: {text}", flush=True)
    for name, texts in only_ordinary().items():
        rows = texts[:ROWS]
        yield ordinary(name, crowding_in(store_of(encoder.encode_texts(rows), rows), function))
    yield from recalled(made)


class Remembering(CheckpointFunction):
    """A checkpoint that is asked for the same sentinels once: one planted row changes few of them."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        super().__init__(checkpoint)
        self._known: dict[str, np.ndarray] = {}

    def encode(self, texts: Sequence[str], role: TextKind = "text", **asked: Any) -> Answers:
        new = [text for text in texts if text not in self._known]
        if new:
            self._known |= zip(new, super().encode(new, role, **asked).vectors, strict=True)
        return Answers(np.array([self._known[text] for text in texts]))


def recalled(made: Sequence[tuple[float, str]]) -> Iterator[Measured]:
    strong = [found for effect, found in made if effect >= EFFECT]
    for what, found, target in (
        ("of those that are among the first ten of a tenth of the queries held out", strong, "≥ .9"),
        ("of all that were made, whatever they do", [found for _, found in made], "–"),
    ):
        named, wrong = sum(map(bool, found)), found.count("problem")
        low, high = exact_share(named, len(found)) if found else (0.0, 1.0)
        yield Measured(
            f"texts made by gradients, {what}: found",
            f"{named} of {len(found)} [{low:.2f}, {high:.2f}], {wrong} as a problem",
            target,
        )


def ordinary(name: str, found: Crowding | None) -> Measured:
    assert found is not None
    named, wrong = len(found.crowding), len(found.problems)
    return Measured(f"ordinary rows that are named: {name}", f"{named} of {found.rows:,}, {wrong} problems", "≤ 1 %")


def attacked() -> dict[str, list[str]]:
    """Corpora about one field each, as stores of one application are."""
    with zipfile.ZipFile(REAL_DATA / "classification" / "movie_reviews.zip") as archive:
        names = sorted(name for name in archive.namelist() if name.endswith(".txt"))
        films = [" ".join(archive.read(name).decode("latin-1").split())[:CUT] for name in names]
    lines = (REAL_DATA / "sts" / "sick" / "SICK_train.txt").read_text(encoding="utf-8").splitlines()[1:]
    captions = list(dict.fromkeys(side for line in lines for side in line.split("\t")[1:3]))
    return {"film reviews": films, "captions of SICK": captions, "other film reviews": films}


def only_ordinary() -> dict[str, list[str]]:
    """Corpora in which nothing is planted."""
    passages = REAL_DATA / "msmarco" / "passages-5k" / "corpus.jsonl"
    with passages.open(encoding="utf-8") as file:
        answers = [json.loads(line)["text"][:CUT] for line in file][3_000:]
    with REAL_SENTENCES.open(encoding="utf-8") as file:
        wikipedia = [line.strip()[:CUT] for line in file if len(line) > 40][6_000:]
    test = (REAL_DATA / "sts" / "semeval-sts" / "2015" / "headlines.test.tsv").read_text(encoding="utf-8")
    headlines = list(dict.fromkeys(side for line in test.splitlines() for side in line.split("\t")[1:3]))
    return {"passages of MS MARCO": answers, "Wikipedia": wikipedia, "headlines": headlines}


def a_few_words(text: str, generator: np.random.Generator) -> str:
    words = text.split()
    start = int(generator.integers(0, max(1, len(words) - WORDS + 1)))
    return " ".join(words[start : start + WORDS]) if len(words) >= WORDS else ""


def attacks(queries: np.ndarray, generator: np.random.Generator) -> Iterator[tuple[str, np.ndarray]]:
    """What queries each text is made for."""
    from sklearn.cluster import KMeans

    for _ in range(EVERYTHING):
        yield "all", generator.permutation(len(queries))[: 2 * QUERIES // 3]
    labels = KMeans(CLUSTERS, n_init=3, random_state=0).fit(queries).labels_
    for one in np.argsort(-np.bincount(labels))[:SUBJECTS]:
        yield "subject", np.flatnonzero(labels == one)


@dataclass(frozen=True)
class Words:
    """The tokens of a vocabulary that are words by themselves, and their embeddings."""

    is_word: torch.Tensor
    embeddings: torch.Tensor

    @classmethod
    def of(cls, checkpoint: Checkpoint) -> Words:
        tokens = checkpoint.tokenizer.convert_ids_to_tokens(
            range(checkpoint.model.get_input_embeddings().weight.shape[0])
        )
        is_word = [
            token is not None and token.isascii() and token.isalpha() and len(token) >= FEWEST_LETTERS
            for token in tokens
        ]
        return cls(torch.tensor(is_word), checkpoint.model.get_input_embeddings().weight.detach())


def flipped(
    checkpoint: Checkpoint,
    wanted: np.ndarray,
    queries: Sequence[str],
    generator: np.random.Generator,
    *,
    steps: int = STEPS,
    messages: Sequence[str] = MESSAGES,
) -> str:
    """A text near to (m, D) vectors of queries: in every step, the best of some exchanges that the gradient proposes.

    For a mean-pooled encoder whose vectors have unit length.
    """
    words, tokenizer = Words.of(checkpoint), checkpoint.tokenizer
    centre = torch.tensor(np.asarray(wanted, dtype=np.float32).mean(axis=0))
    known = [one for text in queries for one in tokenizer(text, add_special_tokens=False)["input_ids"]]
    known = [one for one in known if words.is_word[one]]
    length = int(generator.integers(*LENGTH))
    message = tokenizer(messages[int(generator.integers(len(messages)))], add_special_tokens=False)["input_ids"]
    begin = generator.choice(known, length).tolist()
    ids = torch.tensor([tokenizer.cls_token_id, *begin, *message, tokenizer.sep_token_id])
    best = -1.0
    for _ in range(steps):
        embedded = words.embeddings[ids][None].clone().requires_grad_(True)
        near = _vectors(checkpoint, inputs_embeds=embedded)[0] @ centre
        near.backward()  # type: ignore[no-untyped-call]
        best = max(best, float(near.detach()))
        assert embedded.grad is not None
        gain = embedded.grad[0, 1 : 1 + length] @ words.embeddings.T
        gain[:, ~words.is_word] = -torch.inf
        proposed = gain.topk(TOP, dim=1).indices
        tried = ids.repeat(CANDIDATES, 1)
        places, picks = generator.integers(0, length, CANDIDATES), generator.integers(0, TOP, CANDIDATES)
        for one, (place, pick) in enumerate(zip(places, picks, strict=True)):
            tried[one, 1 + place] = proposed[place, pick]
        with torch.no_grad():
            nearness = _vectors(checkpoint, input_ids=tried) @ centre
        if float(nearness.max()) > best:
            best, ids = float(nearness.max()), tried[int(nearness.argmax())]
    return str(tokenizer.decode(ids[1:-1].tolist()))


def _vectors(checkpoint: Checkpoint, **texts: torch.Tensor) -> torch.Tensor:
    """(n, D) mean of the last states at unit length; of texts of one length each."""
    shape = next(iter(texts.values())).shape[:2]
    states = checkpoint.model(attention_mask=torch.ones(shape, dtype=torch.long), **texts).last_hidden_state
    return torch.nn.functional.normalize(states.mean(dim=1), dim=-1)


def planted(function: EmbeddingFunction, encoder: Encoder, vectors: np.ndarray, rows: Sequence[str], text: str) -> str:
    """At which level the one planted row is named; empty if it is not."""
    store = store_of(np.vstack([vectors, encoder.encode_texts([text])]), [*rows, text])
    found = crowding_in(store, function)
    assert found is not None
    return next((hub.level for hub in found.crowding if hub.number == len(rows)), "")


def effect_of(asked: np.ndarray, vectors: np.ndarray, planted: np.ndarray) -> float:
    """The share of queries that have the planted vector among their first ten."""
    others = np.sort(asked @ unit_float32(vectors).T, axis=1)[:, -NEAREST]
    return float((asked @ unit_float32(planted)[0] > others).mean())


def store_of(vectors: np.ndarray, texts: Sequence[str]) -> Store:
    """A store in memory."""
    places = np.arange(len(texts))
    batch = RowBatch(0, len(texts), {vectors.shape[1]: (places, vectors)}, list(texts), [str(one) for one in places])
    columns = {"vector": "vector", "text": "text", "id": "id"}
    return Store("rows in memory", columns, "float32", lambda fields=(), /: iter([batch]), rows=len(texts))
