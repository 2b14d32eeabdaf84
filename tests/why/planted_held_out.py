"""Eight searches that are lost, planted after the rules were finished: other stores, metrics, places and counts."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from kept_texts import Kept, parquet
from planted import Plant, Planted, at_cosine, cosine_of, nearer, place_of, sentence_of, texts_file, token_list

from tests.planted_indexes import L2, built, written

PLANTS: dict[str, Plant] = {}


def held_out(function: Plant) -> Plant:
    PLANTS[function.__name__.replace("_", " ")] = function
    return function


def chroma(kept: Kept, folder: Path, space: str, vectors: np.ndarray, texts: list[str], **title: str) -> Path:
    """A collection, of which rows may have a title."""
    import chromadb

    client = chromadb.PersistentClient(str(folder))
    collection = client.create_collection("docs", configuration={"hnsw": {"space": space}})
    collection.add(
        ids=kept.ids,
        documents=texts,
        embeddings=[vector.tolist() for vector in vectors],
        metadatas=[{"title": title.get(one.replace("-", "_"), f"Notes of week {n}")} for n, one in enumerate(kept.ids)],
    )
    return folder


@held_out
def the_vector_of_the_text_before_in_chroma_by_distance(kept: Kept, folder: Path) -> Planted:
    query, expect = kept.queries[20]
    place = place_of(expect)
    vectors = kept.vectors.copy()
    vectors[place] = vectors[place - 1]
    store = chroma(kept, folder, "l2", vectors, kept.texts)
    return Planted(store, query, expect, ("vector", "another text"), {"k": 5})


@held_out
def a_title_that_chroma_does_not_embed(kept: Kept, folder: Path) -> Planted:
    texts, vectors = list(kept.texts), kept.vectors.copy()
    texts[50] = "It rose in the second half, mostly abroad, and the board expects no more than that this year."
    vectors[50] = kept.of(texts[50])[0]
    store = chroma(kept, folder, "cosine", vectors, texts, row_50="Zanzibar tourism revenue 2031")
    return Planted(store, "zanzibar tourism revenue", "row-50", ("text", "another field"))


@held_out
def five_and_twenty_revisions_by_distance(kept: Kept, folder: Path) -> Planted:
    """Of one notice, each with another date; five results are shown."""
    query, expect = "when is the office closed for the summer holidays", "wanted"
    notice = "Notice: the office is closed for the summer holidays from the {day}th of July to the tenth of August."
    answer = "In the hot months nobody is at the desk: see the calendar at the door for the weeks, and call the guard."
    revisions = [notice.format(day=day) for day in range(4, 29)]
    texts = [*kept.texts, *revisions, answer]
    vectors = np.concatenate([kept.vectors, kept.of(*revisions, answer)])
    index = built("Flat", np.ascontiguousarray(vectors, np.float32), L2)
    file = folder / "texts.jsonl"
    ids = [*kept.ids, *(f"v{n}" for n in range(25)), expect]
    rows = [json.dumps({"id": one, "text": text}) for one, text in zip(ids, texts, strict=True)]
    file.write_text("\n".join(rows), encoding="utf-8")
    store = written(index, folder / "rows.faiss")
    return Planted(store, query, expect, ("cut-off", "copies"), {"texts": file, "k": 5})


@held_out
def lists_that_are_not_probed_by_distance(kept: Kept, folder: Path) -> Planted:
    index = built("IVF64,Flat", kept.vectors, L2)
    for query, expect in kept.queries[::-1]:
        if place_of(expect) not in index.search(np.asarray(kept.of(query), np.float32), 3)[1][0]:
            break
    store = written(index, folder / "rows.faiss")
    given = {"texts": texts_file(kept, folder), "k": 3}
    return Planted(store, query, str(place_of(expect)), ("search", "approximate"), given)


@held_out
def hubs(kept: Kept, folder: Path) -> Planted:
    """Nine texts in the middle of all others, a little nearer to the query than the row that is fifth."""
    query, _ = kept.queries[21]
    asked = kept.of(query)[0]
    row = int(np.argsort(-(kept.vectors @ asked))[4])
    middle = kept.vectors.mean(axis=0)
    middle = middle / np.linalg.norm(middle)
    target = float(kept.vectors[row] @ asked) + 0.02
    rows = []
    for n in range(9):
        share = 0.0
        vector = middle
        while float(vector @ asked) < target:
            share += 0.01
            vector = (1 - share) * middle + share * asked
            vector = vector / np.linalg.norm(vector)
        noise = at_cosine(vector, 0.99, n)
        noise = noise if float(noise @ asked) > target - 0.01 else vector
        rows.append((f"hub-{n}", f"{kept.texts[300 + n]} And so on", np.asarray(noise, np.float32)))
    return Planted(parquet(kept.with_rows(rows), folder), query, kept.ids[row], ("function", "hubs"))


@held_out
def sticky_tokens_in_the_query(kept: Kept, folder: Path) -> Planted:
    query, expect = kept.queries[22]
    sticky = query + " " + "ⁱ" * 30
    text = kept.texts[place_of(expect)]
    cosine = (cosine_of(kept, sticky, text) + 0.03, 40)
    store = parquet(kept.with_rows(nearer(kept, sticky, *cosine)), folder)
    given = {"tokens": token_list(kept, folder, "##ⁱ")}
    return Planted(store, sticky, expect, ("function", "sticky tokens"), given)


@held_out
def a_sentence_in_the_middle_of_a_text_without_punctuation(kept: Kept, folder: Path) -> Planted:
    """Of 700 words, behind the limit."""
    query, expect = kept.queries[23]
    answer = sentence_of(kept, query, expect)
    words = " ".join(text for n, text in enumerate(kept.texts) if n != place_of(expect)).split()
    plain = [word.strip(".,;:!?\"'()").lower() for word in [*words[3_000:3_400], *answer.split(), *words[3_400:3_700]]]
    text = " ".join(word for word in plain if word)
    rows = [("wanted", text, kept.of(text)[0]), (expect, "gone", kept.of("gone")[0])]
    return Planted(parquet(kept.with_rows(rows), folder), query, "wanted", ("text", "beyond the limit"))


@held_out
def zeros_in_lance(kept: Kept, folder: Path) -> Planted:
    import lancedb

    query, expect = kept.queries[24]
    vectors = kept.vectors.astype(np.float32).copy()
    vectors[place_of(expect)] = np.nan
    rows = [
        {"id": one, "text": text, "vector": vector.tolist()}
        for one, text, vector in zip(kept.ids, kept.texts, vectors, strict=True)
    ]
    lancedb.connect(str(folder)).create_table("docs", rows, on_bad_vectors="fill", fill_value=0.0)
    return Planted(folder, query, expect, ("vector", "zeros only"))
