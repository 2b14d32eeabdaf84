"""Servers, exports and gateways: what happens between a request and its answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.serving.faults import as_lists, faithful, unit
from benchmarks.serving.server import Encode, Refusal, Served
from benchmarks.situations.asking import served_check, served_parity, served_verify
from benchmarks.situations.networks import WIDTH, good, load, network
from benchmarks.situations.situation import Situation
from embaudit.checkpoint import Checkpoint, Encoder
from embaudit.embedders.opened import CallOptions
from embaudit.questions.report import Report

Ask = Callable[[Path, bool], Report]


def asked_of(
    make: Callable[[Checkpoint, bool], Served | Encode],
    ask: Callable[..., Report] = served_parity,
    family: str = "bert",
    asked: CallOptions | None = None,
    **changed: Any,
) -> Ask:
    """A small network behind a server."""

    def made(folder: Path, is_broken: bool) -> Report:
        checkpoint = load(network(folder / "network", family, **changed))
        served = make(checkpoint, is_broken)
        served = served if isinstance(served, Served) else Served(served)
        return ask(checkpoint, served, *([] if asked is None else [asked]))

    return made


def gateway(is_other: Callable[[int], bool]) -> Callable[[Checkpoint, Checkpoint], Served]:
    """Requests of some numbers, counted from 1, go to another model."""

    def made(first: Checkpoint, second: Checkpoint) -> Served:
        served = Served(faithful(first))
        models = [faithful(first), faithful(second)]
        # The request is on the list already.
        served.encode = lambda texts: models[is_other(len(served.requests))](texts)
        return served

    return made


def changing(is_other: Callable[[int], bool], ask: Callable[..., Report] = served_parity) -> Ask:
    """A gateway with two models, or with one twice."""

    def made(folder: Path, is_broken: bool) -> Report:
        first = load(network(folder / "one"))
        second = load(network(folder / "two", seed=1)) if is_broken else first
        return ask(first, gateway(is_other)(first, second))

    return made


def changing_checked(folder: Path, is_broken: bool) -> Report:
    other = replace(good(), recipe=replace(good().recipe, pooling=("cls",))) if is_broken else good()
    return served_check(gateway(lambda number: number > 150)(good(), other))


def rows_after_32(folder: Path, is_broken: bool) -> Report:
    encode = faithful(good())

    def answer(texts: list[str]) -> np.ndarray:
        rows = encode(texts)
        return rows[np.arange(len(rows)) % 32] if is_broken else rows

    return served_check(Served(answer))


def cut_at_2048(folder: Path, is_broken: bool) -> Report:
    checkpoint = load(
        network(folder / "long", limit=8_192, max_position_embeddings=8_192, num_hidden_layers=1, num_attention_heads=1)
    )
    limit = 2_048 if is_broken else 8_192
    return served_parity(
        checkpoint, Served(faithful(replace(checkpoint, limits=dict.fromkeys(checkpoint.limits, limit))))
    )


def without_base64(checkpoint: Checkpoint, is_broken: bool) -> Served:
    return Served(faithful(checkpoint), after=as_lists if is_broken else bytes)


def units(rows: np.ndarray) -> np.ndarray:
    return np.array([unit(row) for row in rows])


HALF_WIDTH = CallOptions(dimensions=WIDTH // 2)


def dimensions(wrong: Callable[[np.ndarray], np.ndarray]) -> Callable[[Checkpoint, bool], Encode]:
    def made(checkpoint: Checkpoint, is_broken: bool) -> Encode:
        encode = faithful(checkpoint)
        right = lambda rows: units(rows[:, : WIDTH // 2])  # noqa: E731
        return lambda texts: (wrong if is_broken else right)(encode(texts))

    return made


def states(checkpoint: Checkpoint, ids: list[int], width: int, *, has_mask: bool, is_from_zero: bool = False) -> Any:
    """The mean of the states of one sequence, padded to a width."""
    padding = [checkpoint.tokenizer.pad_token_id] * max(0, width - len(ids))
    batch = torch.tensor([ids + padding])
    mask = torch.ones_like(batch)
    if has_mask and padding:
        mask[:, len(ids) :] = 0
    asked = {"input_ids": batch, "attention_mask": mask}
    if is_from_zero:
        asked["position_ids"] = torch.arange(batch.shape[1])[None]
    with torch.inference_mode():
        found = checkpoint.model(**asked).last_hidden_state[0]
    return unit(found[mask[0].bool()].mean(0).numpy().astype(np.float64))


def padded_to(width: int) -> Callable[[Checkpoint, bool], Encode]:
    """Every text is padded to one width, without a mask or with one."""
    return lambda checkpoint, is_broken: (
        lambda texts: np.array(
            [states(checkpoint, ids, width, has_mask=not is_broken) for ids in checkpoint.tokenize(texts)]
        )
    )


def padded_to_the_longest_so_far(checkpoint: Checkpoint, is_broken: bool) -> Encode:
    """A buffer that grows with the longest text."""
    longest = [0]

    def encode(texts: list[str]) -> np.ndarray:
        rows = []
        for ids in checkpoint.tokenize(texts):
            longest[0] = max(longest[0], len(ids))
            rows.append(states(checkpoint, ids, longest[0], has_mask=not is_broken))
        return np.array(rows)

    return encode


def from_zero(checkpoint: Checkpoint, is_broken: bool) -> Encode:
    return lambda texts: np.array(
        [states(checkpoint, ids, 0, has_mask=True, is_from_zero=is_broken) for ids in checkpoint.tokenize(texts)]
    )


def other_end(checkpoint: Checkpoint, is_broken: bool) -> Encode:
    """Texts end in [MASK], or in what is declared."""
    ending = replace(checkpoint, suffix_ids=(checkpoint.tokenizer.mask_token_id,)) if is_broken else checkpoint
    return lambda texts: np.asarray(
        Encoder(ending).encode_ids(
            [ending.with_special_tokens(own[: ending.content_limit]) for own in ending.own_ids(texts)]
        )
    )


def shifted(checkpoint: Checkpoint, is_broken: bool) -> Encode:
    """Empty texts are left out of a request, and the others move up; or each has a vector."""
    encode = faithful(checkpoint)

    def answer(texts: list[str]) -> np.ndarray:
        some = [text for text in texts if text.strip() or not is_broken]
        if not some:
            raise Refusal(400, "nothing in it")
        rows = encode(some)
        return np.concatenate([rows, rows[: len(texts) - len(some)]])

    return answer


SERVERS = (
    Situation("rows after the 32nd of a request are wrong", "check", rows_after_32, r"others in a request"),
    Situation("8,192 tokens declared, cut at 2,048", "parity", cut_at_2048, r"reads about 2,0\d\d tokens of a text"),
    Situation("another model after 80 requests", "parity", changing(lambda number: number > 80), r"from request 81 on"),
    Situation("another model after 150 requests", "check", changing_checked, r"request 151 on|between requests"),
    Situation(
        "another model at every twelfth request",
        "parity",
        changing(lambda number: number % 12 == 0),
        r"at every 12th request",
    ),
    Situation(
        "another model at every twelfth request",
        "verify",
        changing(lambda number: number % 12 == 0, served_verify),
        r"at every 12th request",
    ),
    Situation("base64 is ignored: lists come", "parity", asked_of(without_base64), r"gives lists of numbers"),
    Situation(
        "dimensions are ignored",
        "parity",
        asked_of(dimensions(lambda rows: rows), asked=HALF_WIDTH),
        r"Asked for 16 dimensions, .* gives 32",
    ),
    Situation(
        "cut and not normalised again",
        "parity",
        asked_of(dimensions(lambda rows: rows[:, : WIDTH // 2]), asked=HALF_WIDTH),
        r"cuts its vectors and does not normalise them again",
    ),
    Situation(
        "padding to a fixed length without a mask",
        "parity",
        asked_of(padded_to(64)),
        r"pads texts to 64 tokens and reads the padding, without a mask",
    ),
    Situation(
        "padding to the longest so far without a mask",
        "parity",
        asked_of(padded_to_the_longest_so_far),
        r"pads texts to the longest so far",
    ),
    Situation(
        "RoBERTa's positions from 0", "parity", asked_of(from_zero, family="roberta"), r"counts positions from 0"
    ),
    Situation("another end token", "parity", asked_of(other_end), r"ends texts with \[MASK\] in place of \[SEP\]"),
    Situation(
        "an empty text shifts the others",
        "parity",
        asked_of(shifted),
        r"leaves out a text with nothing in it, and gives those after it each other's vectors",
    ),
)
