"""Searches that are lost at a known place, by the packaged checkpoint and stores on disk: each is named."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from kept_texts import PACKAGED, Kept, named, parquet, walked

import embaudit
from embaudit.checkpoint import Checkpoint
from embaudit.remedies.screening.tokens import SevereToken, TokenList
from tests.planted_indexes import built, graph, on_the_ground, without_links_to, written

pytestmark = pytest.mark.slow


def test_what_is_in_no_row_or_has_no_vector_or_another(kept: Kept, tmp_path: Path) -> None:
    _, other = kept.queries[1]
    # A line of many things, whose neighbour says something else.
    place = len(kept.texts) - 20
    query, expect = " ".join(kept.texts[place].split()[:8]), kept.ids[place]
    text, D = kept.texts[place], kept.vectors.shape[1]
    random = np.random.default_rng(0).normal(size=D)
    neighbour = kept.vectors[place + 1]
    rows: dict[str, tuple[np.ndarray | None, tuple[str, str]]] = {
        "zeros": (np.zeros(D), ("vector", "zeros only")),
        "NaN": (np.full(D, np.nan), ("vector", "not finite (NaN or infinity)")),
        "none": (None, ("vector", "missing")),
        "of another model": (random / np.linalg.norm(random), ("vector", "foreign")),
        "of the next text": (neighbour, ("vector", "another text")),
        "of another dimension": (np.ones(D // 2), ("vector", f"of {D // 2:,} numbers, those of others of {D:,}")),
        "its own": (kept.vectors[place], ("found", "")),
    }
    for number, (what, (vector, wanted)) in enumerate(rows.items()):
        (tmp_path / str(number)).mkdir()
        store = parquet(kept.with_rows([(expect, text, vector)]), tmp_path / str(number))
        assert named(walked(store, query, expect)) == wanted, what
        if what == "its own":
            assert named(walked(store, query, "row-none")) == ("absent", "")
            assert named(walked(store, query, text)) == ("found", "")
            assert named(walked(store, query, f"{text} {kept.texts[place + 1]}")) == ("absent", "pieces")
            assert named(walked(store, query, expect, min_score=0.99)) == ("cut-off", "score")
            report = walked(store, kept.queries[5][0], other)
            assert named(report)[0] in ("function", "cut-off")


def test_what_stands_behind_the_limit_or_in_a_part(kept: Kept, tmp_path: Path) -> None:
    for number in range(3):
        query, expect = kept.queries[number]
        evidence = kept.texts[int(expect.removeprefix("row-"))]
        filler = [text for text in kept.texts if text != evidence][20 * number + 30 : 20 * number + 50]
        before, within = " ".join([*filler, evidence]), " ".join([*filler[:3], evidence, *filler[3:6]])
        for what, text in (("beyond the limit", before), ("piece", within)):
            others = [(one, filler[0], kept.of(f"{filler[0]} {one}")[0]) for one in (expect,)]
            # Rows that come nearer than a long text of many things.
            near = [(f"near-{place}", f"{query} {place}", kept.of(f"{query} {place}")[0]) for place in range(11)]
            folder = tmp_path / f"{number}-{what[:3]}"
            folder.mkdir()
            weaker = [(one, text_, vector * 1.0) for one, text_, vector in near]
            asked = kept.of(query)[0]
            piece = kept.of(evidence)[0]
            # Their vectors are less near than what answers, and nearer than the whole.
            whole = float(asked @ kept.of(text)[0])
            target = (whole + float(asked @ piece)) / 2
            weaker = [(one, text_, _at_cosine(asked, target, place)) for place, (one, text_, _) in enumerate(near)]
            store = parquet(kept.with_rows([*others, *weaker, ("long", text, kept.of(text)[0])]), folder)
            found = named(walked(store, query, "long"))
            assert found[0] == "text", (number, what, found)
            if what == "beyond the limit":
                assert found[1] == what


def _at_cosine(asked: np.ndarray, cosine: float, seed: int) -> np.ndarray:
    """A vector of unit length at this cosine to another."""
    other = np.random.default_rng(seed).normal(size=len(asked))
    other -= (other @ asked) * asked / (asked @ asked)
    unit = asked / np.linalg.norm(asked)
    return np.asarray(cosine * unit + np.sqrt(1 - cosine**2) * other / np.linalg.norm(other), np.float32)


def test_what_stands_above(kept: Kept, tmp_path: Path) -> None:
    query, expect = kept.queries[2]
    asked = kept.of(query)[0]
    nearer = float(asked @ kept.vectors[int(expect.removeprefix("row-"))]) + 0.02
    vectors = [_at_cosine(asked, nearer, place) for place in range(12)]
    plants = {
        "copies": ([(f"x-{n}", "The same passage, stored many times over", vectors[0]) for n in range(12)], "cut-off"),
        "no content": ([(f"x-{n}", f"page {n}", vector) for n, vector in enumerate(vectors)], "function"),
        "k": ([(f"x-{n}", f"{kept.texts[n]} and more", vector) for n, vector in enumerate(vectors)], "cut-off"),
    }
    for cause, (rows, lost) in plants.items():
        (tmp_path / cause).mkdir()
        store = parquet(kept.with_rows(rows), tmp_path / cause)
        assert named(walked(store, query, expect)) == (lost, cause)


def test_what_the_function_does_not_put_near(kept: Kept, tmp_path: Path) -> None:
    store = parquet(kept.with_rows([]), tmp_path)
    for number in range(3):
        query, _ = kept.queries[number]
        scores = kept.vectors @ kept.of(query)[0]
        far = kept.ids[int(np.argsort(-scores)[400])]
        report = walked(store, query, far)
        assert named(report)[0] == "function"
        assert report.walked.cases[0].rank == 401


def test_what_the_search_or_a_filter_loses(kept: Kept, tmp_path: Path) -> None:
    texts = tmp_path / "texts.txt"
    texts.write_text("".join(f"{' '.join(text.split())}\n" for text in kept.texts), encoding="utf-8")
    index = graph(kept.vectors, 16, 100, 40)
    planted = on_the_ground(index, 400)
    query, expect = next(one for one in kept.queries if int(one[1].removeprefix("row-")) in planted)
    row = expect.removeprefix("row-")
    cut = written(without_links_to(index, [int(row)]), tmp_path / "cut.faiss")
    assert named(walked(cut, query, row, texts=texts)) == ("search", "approximate")

    thin = written(built("IVF200,Flat", kept.vectors), tmp_path / "ivf.faiss")
    asked = {one: kept.of(one)[0] for one, _ in kept.queries}
    probed = built("IVF200,Flat", kept.vectors)
    missed = [
        (one, id_.removeprefix("row-"))
        for one, id_ in kept.queries
        if int(id_.removeprefix("row-")) not in probed.search(asked[one][None], 10)[1][0]
    ]
    assert missed
    report = walked(thin, *missed[0], texts=texts)
    assert named(report) == ("search", "approximate")
    assert report.lost[0].mend.startswith("Set nprobe ")

    lengths = np.ones(len(kept.vectors), np.float32)
    lengths[int(row)] = 0.05
    uneven = written(built("Flat", kept.vectors * lengths[:, None]), tmp_path / "uneven.faiss")
    assert named(walked(uneven, query, row, texts=texts)) == ("search", "metric")

    languages = ["de" if one == expect else "en" for one in kept.ids]
    (tmp_path / "filter").mkdir()
    store = parquet(kept.with_rows([]), tmp_path / "filter", lang=languages)
    assert named(walked(store, query, expect, where={"lang": "en"})) == ("filter", "")
    assert named(walked(store, query, expect, where={"lang": "de"})) == ("found", "")


def test_many_cases_are_counted_and_named(kept: Kept, tmp_path: Path) -> None:
    store = parquet(kept.with_rows([]), tmp_path)
    golden = tmp_path / "golden.csv"
    lines = [f'"{query}",{expect}' for query, expect in kept.queries[:20]]
    golden.write_text("\n".join(["query,expect", *lines, "who is lost,row-none"]), encoding="utf-8")

    report = embaudit.why(store, PACKAGED, golden=golden, device="cpu")

    assert report.counts == {"found": 20, "absent": 1}
    assert report.exit_code == 1
    assert "20 of 21 are found" in report.line
    assert "no such row" in report.line


def test_sticky_tokens_in_a_text_are_taken_out(kept: Kept, minilm: Checkpoint, tmp_path: Path) -> None:
    """Copies of a token that pulls everything to one value, as the packaged checkpoint has them."""
    query, expect = kept.queries[2]
    place = int(expect.removeprefix("row-"))
    (token,) = minilm.tokenizer.convert_tokens_to_ids(["##ⁱ"])
    text = kept.texts[place] + "ⁱ" * 40
    assert minilm.own_ids([text])[0].count(token) > 8
    listed = TokenList(
        checkpoint=PACKAGED,
        checkpoint_id=minilm.checkpoint_id,
        tokenizer_sha256=minilm.identity.tokenizer_sha256,
        max_length=256,
        audit_id="a",
        severity="strong",
        validated=1,
        tokens=(SevereToken(token_id=token, token="##ⁱ", text="ⁱ", is_reachable=True, loss=0.5, severity="strong"),),
    )
    (tmp_path / "tokens.json").write_text(listed.as_json(is_ascii=False), encoding="utf-8")
    stored = kept.of(text)[0]
    asked = kept.of(query)[0]
    whole, clean = float(asked @ stored), float(asked @ kept.vectors[place])
    assert whole < clean
    above = [(f"x-{n}", f"{kept.texts[n]} and more", _at_cosine(asked, (whole + clean) / 2, n)) for n in range(40)]
    rows = [(one, text_, vector) for one, text_, vector in above]
    store = parquet(kept.with_rows([*rows, (expect, text, stored)]), tmp_path)

    report = walked(store, query, expect, tokens=tmp_path / "tokens.json")

    assert named(report) == ("function", "sticky tokens")
    assert "'##ⁱ' × " in report.lost[0].sentence
