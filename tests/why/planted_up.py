"""Rows that come up by one known cause each and should not, by the packaged checkpoint."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from kept_texts import Kept, parquet
from planted import Plant, Planted, at_cosine, token_list

COME_UP: dict[str, Plant] = {}


def comes_up(function: Plant) -> Plant:
    COME_UP[function.__name__.replace("_", " ")] = function
    return function


def with_row(kept: Kept, folder: Path, text: str, vector: np.ndarray | None = None) -> Path:
    return parquet(kept.with_rows([("wrong", text, kept.of(text)[0] if vector is None else vector)]), folder)


@comes_up
def a_foreign_vector(kept: Kept, folder: Path) -> Planted:
    query, _ = kept.queries[0]
    text = "The bridge across the river was opened in the spring after nine years of work on its piers."
    store = with_row(kept, folder, text, at_cosine(kept.of(query)[0], 0.9, 3))
    return Planted(store, query, "wrong", ("came up", "foreign vector"))


@comes_up
def a_word_in_another_sense(kept: Kept, folder: Path) -> Planted:
    text = "The jaguar is a large cat of the forests of the Americas, which hunts deer and swims well."
    store = with_row(kept, folder, text)
    return Planted(store, "second hand jaguar for sale", "wrong", ("came up", "1 word of the query"))


@comes_up
def a_heading(kept: Kept, folder: Path) -> Planted:
    """Of a text that says something else than the heading promises."""
    text = "Boats of all sizes are built at the harbour, and sails and ropes are sold in the shop beside it."
    rows = [(one, said, kept.of(said)[0]) for one, said in (("wrong", "Food poisoning"), ("below", text))]
    store = parquet(kept.with_rows(rows), folder)
    return Planted(store, "who was ill of food", "wrong", ("came up", "few words"))


@comes_up
def a_hub(kept: Kept, folder: Path) -> Planted:
    """A row in the middle of all, without a text, among the ten of a query."""
    query, _ = kept.queries[5]
    middle = kept.vectors.mean(axis=0)
    vector = np.asarray(middle / np.linalg.norm(middle), np.float32)
    asked = kept.of(query)[0]
    near = set(np.flatnonzero(kept.vectors @ asked > vector @ asked)[5:].tolist())
    ids, texts, vectors = kept.with_rows([("wrong", "", vector)])
    rows = [place for place in range(len(ids)) if place not in near]
    texts = [text or None for text in texts]  # type: ignore[misc]
    columns = ([column[place] for place in rows] for column in (ids, texts, vectors))
    return Planted(parquet(tuple(columns), folder), query, "wrong", ("came up", "hub"))  # type: ignore[arg-type]


@comes_up
def a_text_that_repeats_the_query(kept: Kept, folder: Path) -> Planted:
    query, _ = kept.queries[1]
    text = f"{query} {query} The shop at the harbour sells ropes, sails, and lamps for boats of all sizes."
    return Planted(with_row(kept, folder, text), query, "wrong", ("came up", "the query's words"))


@comes_up
def sticky_tokens(kept: Kept, folder: Path) -> Planted:
    """In the query and in the text, which have nothing else in common."""
    text = "The bridge across the river was opened in the spring after nine years of work." + "ⁱ" * 60
    query = "recipe for a chocolate cake" + "ⁱ" * 60
    store = with_row(kept, folder, text)
    return Planted(store, query, "wrong", ("came up", "sticky tokens"), {"tokens": token_list(kept, folder, "##ⁱ")})
