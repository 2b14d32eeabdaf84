"""Searches that are lost by one known cause each, in stores of several kinds, by the packaged checkpoint.

The answer of each is a real text, or a sentence of one, that the query is known to find where nothing is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from kept_texts import PACKAGED, Kept, parquet

from embaudit.remedies.screening import SevereToken, TokenList
from tests.planted_indexes import built, graph, on_the_ground, without_links_to, written


@dataclass(frozen=True)
class Planted:
    """A search that is lost.

    Attributes:
        wanted: where, and by which cause.
        given: what else the application does.
    """

    store: Path
    query: str
    expect: str
    wanted: tuple[str, str]
    given: dict[str, Any] = field(default_factory=dict)


Plant = Callable[[Kept, Path], Planted]
PLANTS: dict[str, Plant] = {}


def plant(function: Plant) -> Plant:
    PLANTS[function.__name__.replace("_", " ")] = function
    return function


def place_of(expect: str) -> int:
    return int(expect.removeprefix("row-"))


def at_cosine(asked: np.ndarray, cosine: float, seed: int) -> np.ndarray:
    """A vector of unit length at this cosine to another."""
    other = np.random.default_rng(seed).normal(size=len(asked))
    other -= (other @ asked) * asked / (asked @ asked)
    unit = asked / np.linalg.norm(asked)
    return np.asarray(cosine * unit + np.sqrt(1 - cosine**2) * other / np.linalg.norm(other), np.float32)


def nearer(kept: Kept, query: str, cosine: float, count: int) -> list[tuple[str, str, np.ndarray]]:
    """Rows of ordinary texts at a cosine to a query."""
    asked = kept.of(query)[0]
    return [(f"x-{n}", f"{kept.texts[n]} and more", at_cosine(asked, cosine, n)) for n in range(count)]


def cosine_of(kept: Kept, query: str, text: str) -> float:
    return float(kept.of(query)[0] @ kept.of(text)[0])


def texts_file(kept: Kept, folder: Path) -> Path:
    file = folder / "texts.txt"
    file.write_text("".join(f"{' '.join(text.split())}\n" for text in kept.texts), encoding="utf-8")
    return file


def sentence_of(kept: Kept, query: str, expect: str) -> str:
    """Of the text that answers, the sentence that does."""
    sentences = [one for one in kept.texts[place_of(expect)].split(". ") if len(one.split()) > 4]
    return sentences[int(np.argmax(kept.of(*sentences) @ kept.of(query)[0]))].rstrip(".") + "."


def long_text(kept: Kept, expect: str, before: int, after: int, start: int) -> tuple[str, str]:
    """Other texts before and after a place for an answer."""
    filler = [text for one, text in enumerate(kept.texts) if one != place_of(expect)]
    filler = [text for text in filler if len(text.split()) > 20][start : start + before + after]
    assert len(filler) == before + after
    return " ".join(filler[:before]), " ".join(filler[before:])


def token_list(kept: Kept, folder: Path, token: str) -> Path:
    checkpoint = kept.encoder.checkpoint
    (number,) = checkpoint.tokenizer.convert_tokens_to_ids([token])
    listed = TokenList(
        checkpoint=PACKAGED,
        checkpoint_id=checkpoint.checkpoint_id,
        tokenizer_sha256=checkpoint.identity.tokenizer_sha256,
        max_length=256,
        audit_id="a",
        severity="strong",
        validated=1,
        tokens=(SevereToken(token_id=number, token=token, text=token, is_reachable=True, loss=0.5, severity="strong"),),
    )
    file = folder / "tokens.json"
    file.write_text(listed.as_json(is_ascii=False), encoding="utf-8")
    return file


# The store: what a filter, a vector, an index or a metric loses.


@plant
def a_filter(kept: Kept, folder: Path) -> Planted:
    query, expect = kept.queries[0]
    languages: list[object] = ["de" if one == expect else "en" for one in kept.ids]
    return Planted(
        parquet(kept.with_rows([]), folder, lang=languages),
        query,
        expect,
        ("filter", ""),
        {"where": {"lang": "en"}},
    )


@plant
def a_vector_of_zeros(kept: Kept, folder: Path) -> Planted:
    query, expect = kept.queries[1]
    row = (expect, kept.texts[place_of(expect)], np.zeros(kept.vectors.shape[1]))
    return Planted(parquet(kept.with_rows([row]), folder), query, expect, ("vector", "zeros only"))


@plant
def no_vector(kept: Kept, folder: Path) -> Planted:
    query, expect = kept.queries[2]
    row = (expect, kept.texts[place_of(expect)], None)
    return Planted(parquet(kept.with_rows([row]), folder), query, expect, ("vector", "missing"))


@plant
def a_foreign_vector(kept: Kept, folder: Path) -> Planted:
    query, expect = kept.queries[3]
    vector = -at_cosine(kept.of(query)[0], 0.1, 5)
    row = (expect, kept.texts[place_of(expect)], vector)
    return Planted(parquet(kept.with_rows([row]), folder), query, expect, ("vector", "foreign"))


@plant
def the_next_texts_vector(kept: Kept, folder: Path) -> Planted:
    query, expect = kept.queries[4]
    place = place_of(expect)
    neighbour = next(one for one in (place + 1, place - 1, place + 2) if kept.of(query)[0] @ kept.vectors[one] < 0.1)
    row = (expect, kept.texts[place], kept.vectors[neighbour])
    return Planted(parquet(kept.with_rows([row]), folder), query, expect, ("vector", "another text"))


@plant
def another_functions_index(kept: Kept, folder: Path) -> Planted:
    foreign = np.random.default_rng(0).normal(size=kept.vectors.shape).astype(np.float32)
    query, expect = kept.queries[5]
    asked = kept.of(query)[0]
    foreign[place_of(expect)] -= 3 * asked
    store = parquet((kept.ids, kept.texts, list(foreign)), folder)
    return Planted(store, query, expect, ("vector", "foreign index"))


@plant
def lists_that_are_not_probed(kept: Kept, folder: Path) -> Planted:
    index = built("IVF200,Flat", kept.vectors)
    asked = {one: kept.of(one)[0] for one, _ in kept.queries}
    query, expect = next(
        (one, row)
        for one, row in kept.queries
        if place_of(row) not in index.search(np.asarray(asked[one][None], np.float32), 10)[1][0]
    )
    store = written(index, folder / "rows.faiss")
    row = str(place_of(expect))
    return Planted(store, query, row, ("search", "approximate"), {"texts": texts_file(kept, folder)})


@plant
def a_row_that_no_link_leads_to(kept: Kept, folder: Path) -> Planted:
    index = graph(kept.vectors, 16, 100, 40)
    ground = on_the_ground(index, 400)
    query, expect = next(one for one in kept.queries if place_of(one[1]) in ground)
    store = written(without_links_to(index, [place_of(expect)]), folder / "rows.faiss")
    row = str(place_of(expect))
    return Planted(store, query, row, ("search", "approximate"), {"texts": texts_file(kept, folder)})


@plant
def inner_products_of_uneven_lengths(kept: Kept, folder: Path) -> Planted:
    query, expect = kept.queries[6]
    lengths = np.ones(len(kept.vectors), np.float32)
    lengths[place_of(expect)] = 0.05
    store = written(built("Flat", kept.vectors * lengths[:, None]), folder / "rows.faiss")
    row = str(place_of(expect))
    return Planted(store, query, row, ("search", "metric"), {"texts": texts_file(kept, folder)})


# Cut-offs, and what stands above.


@plant
def a_score_that_is_too_high(kept: Kept, folder: Path) -> Planted:
    query, expect = kept.queries[7]
    return Planted(parquet(kept.with_rows([]), folder), query, expect, ("cut-off", "score"), {"min_score": 0.99})


def copies(kept: Kept, folder: Path, number: int, count: int) -> Planted:
    query, expect = kept.queries[number]
    cosine = cosine_of(kept, query, kept.texts[place_of(expect)]) + 0.02
    vector = at_cosine(kept.of(query)[0], cosine, 0)
    rows = [(f"x-{n}", "The same passage of a manual, stored many times over by a job", vector) for n in range(count)]
    return Planted(parquet(kept.with_rows(rows), folder), query, expect, ("cut-off", "copies"))


PLANTS["a dozen copies"] = partial(copies, number=8, count=12)
PLANTS["ninety copies"] = partial(copies, number=9, count=90)


@plant
def pages_without_content(kept: Kept, folder: Path) -> Planted:
    query, expect = kept.queries[10]
    cosine = cosine_of(kept, query, kept.texts[place_of(expect)]) + 0.02
    asked = kept.of(query)[0]
    rows = [(f"x-{n}", f"page {n}", at_cosine(asked, cosine, n)) for n in range(12)]
    return Planted(parquet(kept.with_rows(rows), folder), query, expect, ("function", "no content"))


@plant
def headings(kept: Kept, folder: Path) -> Planted:
    query, expect = kept.queries[11]
    cosine = cosine_of(kept, query, kept.texts[place_of(expect)]) + 0.02
    asked = kept.of(query)[0]
    first, second = ("Feeding", "Sleeping", "Walking", "Teething"), ("Crawling", "Bathing", "Playing", "Reading")
    names = (*first, *second, "Singing", "Growing", "Resting", "Sitting")
    rows = [(f"x-{n}", f"{name} in the first year", at_cosine(asked, cosine, n)) for n, name in enumerate(names)]
    return Planted(parquet(kept.with_rows(rows), folder), query, expect, ("function", "few words"))


@plant
def just_behind_the_tenth(kept: Kept, folder: Path) -> Planted:
    """A short text that exact search has at 15."""
    for query, _ in kept.queries:
        row = int(np.argsort(-(kept.vectors @ kept.of(query)[0]))[14])
        if len(kept.texts[row].split()) < 40:
            break
    return Planted(parquet(kept.with_rows([]), folder), query, kept.ids[row], ("cut-off", "k"))


# The text and the query.


def behind_the_limit(kept: Kept, folder: Path, number: int, *, is_whole: bool) -> Planted:
    """The answer, a passage or one sentence of it, behind what is read; its own row is taken out."""
    query, expect = kept.queries[number]
    answer = kept.texts[place_of(expect)] if is_whole else sentence_of(kept, query, expect)
    before, after = long_text(kept, expect, 12, 4, 23 * number)
    text = f"{before} {answer} {after}"
    rows = [(expect, "gone", kept.of("gone")[0]), ("wanted", text, kept.of(text)[0])]
    store = parquet(kept.with_rows(rows), folder)
    return Planted(store, query, "wanted", ("text", "beyond the limit"))


PLANTS["a passage behind the limit"] = partial(behind_the_limit, number=13, is_whole=True)
for number, name in enumerate(("a", "another", "a third"), start=14):
    PLANTS[f"{name} sentence behind the limit"] = partial(behind_the_limit, number=number, is_whole=False)


@plant
def a_part_of_a_long_text(kept: Kept, folder: Path) -> Planted:
    query, expect = kept.queries[17]
    before, after = long_text(kept, expect, 3, 3, 300)
    answer = sentence_of(kept, query, expect)
    text = f"{before} {answer} {after}"
    cosine = (cosine_of(kept, query, text) + cosine_of(kept, query, answer)) / 2
    rows = [*nearer(kept, query, cosine, 40), ("wanted", text, kept.of(text)[0])]
    return Planted(parquet(kept.with_rows(rows), folder), query, "wanted", ("text", "piece"))


@plant
def a_field_that_is_not_embedded(kept: Kept, folder: Path) -> Planted:
    text = "The numbers rose by four percent against the year before, and costs fell."
    columns = kept.with_rows([("wanted", text, kept.of(text)[0])])
    fields: list[object] = [None] * (len(columns[0]) - 1) + ["q3_report_acme.pdf"]
    store = parquet(columns, folder, source=fields)
    return Planted(store, "acme q3 report", "wanted", ("text", "another field"))


@plant
def sticky_tokens_in_the_text(kept: Kept, folder: Path) -> Planted:
    query, expect = kept.queries[18]
    clean = kept.texts[place_of(expect)]
    text = clean + "ⁱ" * 40
    cosine = (cosine_of(kept, query, text) + cosine_of(kept, query, clean)) / 2
    rows = [*nearer(kept, query, cosine, 40), (expect, text, kept.of(text)[0])]
    store = parquet(kept.with_rows(rows), folder)
    return Planted(store, query, expect, ("function", "sticky tokens"), {"tokens": token_list(kept, folder, "##ⁱ")})


@plant
def a_history_before_the_question(kept: Kept, folder: Path) -> Planted:
    query, expect = kept.queries[19]
    turns = [f"{'Assistant' if n % 2 else 'User'}: {text}" for n, text in enumerate(kept.texts[200:212])]
    asked = "\n".join([*turns, f"User: {query}"])
    return Planted(parquet(kept.with_rows([]), folder), asked, expect, ("function", "long query"))


@plant
def typos_in_the_query(kept: Kept, folder: Path) -> Planted:
    query, expect = kept.queries[1]
    typed = query.replace("toddler", "todlder").replace("biting", "bitng").replace("children", "chldren")
    clean, wrong = (cosine_of(kept, one, kept.texts[place_of(expect)]) for one in (query, typed))
    assert wrong < clean
    texts = [(f"x-{n}", f"{kept.texts[n]} and more") for n in range(40)]
    asked, plain = kept.of(typed)[0], kept.of(query)[0]
    # Nearer to the query as it is typed, and no nearer to what was meant.
    rows = []
    for n, (one, text) in enumerate(texts):
        vector = at_cosine(asked, wrong + 0.01, n)
        vector -= max(0.0, float(vector @ plain) - clean + 0.05) * plain
        rows.append((one, text, np.asarray(vector / np.linalg.norm(vector), np.float32)))
    rows = [row for row in rows if row[2] @ asked > wrong and row[2] @ plain < clean]
    assert len(rows) > 30
    return Planted(parquet(kept.with_rows(rows), folder), typed, expect, ("function", "query"))
