"""What is declared is tried, or the verdict says up to where: requests of many texts, texts of thousands of tokens."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from compared_functions import compared, endpoint_of
from some_rows import mostly_slow
from tiny import tiny_bert

from benchmarks.serving.faults import faithful
from benchmarks.serving.server import Encode, Refusal, Served
from embaudit.checkpoint import Checkpoint, LoadOptions, load_checkpoint
from embaudit.embedders.checkpoint import CheckpointFunction
from embaudit.measures.quality.material import sample_material
from embaudit.questions.check.served import check_served
from embaudit.questions.passport import make
from embaudit.questions.passport.make import make_passport
from embaudit.questions.passport.verify import verify_with

LIMIT = 4_096


@pytest.fixture(scope="module")
def long_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    """It declares 4,096 tokens, and has positions for more."""
    from transformers import BertConfig, BertModel

    folder: Path = tiny_bert(tmp_path_factory.mktemp("ranges") / "tiny")
    config = BertConfig.from_pretrained(folder, max_position_embeddings=LIMIT + 1_024, num_hidden_layers=1)
    BertModel(config, add_pooling_layer=False).save_pretrained(folder)
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": LIMIT, "do_lower_case": False}))
    return load_checkpoint(str(folder), LoadOptions(device="cpu"))


def cut(checkpoint: Checkpoint, limit: int) -> Encode:
    return faithful(replace(checkpoint, limits=dict.fromkeys(checkpoint.limits, limit)))


def refusing(checkpoint: Checkpoint, limit: int) -> Encode:
    encode = faithful(checkpoint)

    def answer(texts: list[str]) -> np.ndarray:
        if max(map(len, checkpoint.own_ids(texts))) > limit:
            raise Refusal(413, "too long")
        return encode(texts)

    return answer


# (the server, the level of what is said, a part of the line or of the finding)
LONG: dict[str, tuple[Callable[[Checkpoint], Encode], str, str]] = {
    "as declared": (faithful, "ok", "read to their end, up to 4,096 tokens, the declared limit"),
    "cut at 2,048": (lambda c: cut(c, 2_048), "problem", "where the checkpoint declares 4,096"),
    "cut at 1,300": (lambda c: cut(c, 1_300), "problem", "where the checkpoint declares 4,096"),
    "refused beyond 2,000": (lambda c: refusing(c, 2_000), "problem", "gets no vector, where the checkpoint declares"),
    "longer than declared": (lambda c: cut(c, LIMIT + 900), "look", "more of a text than the 4,096 tokens"),
}


@pytest.mark.parametrize("name", mostly_slow(LONG, ("cut at 2,048",)))
def test_texts_up_to_the_declared_limit(long_checkpoint: Checkpoint, name: str) -> None:
    make, level, said = LONG[name]
    report = compared(long_checkpoint, Served(make(long_checkpoint)))
    assert said in report.line + " ".join(one.sentence for one in report.findings)
    assert (level == "problem") == (report.verdict == "another function")
    assert "for texts of up to 1,024 tokens" in report.line or level == "problem"
    if "cut at" in name:
        limit = int(name.removeprefix("cut at ").replace(",", ""))
        (value,) = (one.value for one in report.findings if one.name == "declared_limit")
        assert value == pytest.approx(limit, rel=0.05)


class TestHowFarAPassportReaches:
    """To the declared limit and just behind it, where that can be encoded in the time of a passport."""

    def test_to_the_limit(self, long_checkpoint: Checkpoint, served_checkpoint: Checkpoint) -> None:
        for checkpoint in (long_checkpoint, served_checkpoint):
            known = CheckpointFunction(checkpoint)
            passport = make_passport(known)
            assert max(one.tokens for one in passport.canaries) > checkpoint.max_length
            assert verify_with(passport, known).line == "The same function."
        cut_off = replace(long_checkpoint, limits=dict.fromkeys(long_checkpoint.limits, 2_048))
        report = verify_with(make_passport(CheckpointFunction(long_checkpoint)), CheckpointFunction(cut_off))
        assert report.differing == ("at the limit", "beyond the limit")
        longer = replace(long_checkpoint, limits=dict.fromkeys(long_checkpoint.limits, LIMIT + 900))
        report = verify_with(make_passport(CheckpointFunction(long_checkpoint)), CheckpointFunction(longer))
        assert report.differing == ("beyond the limit",)

    @pytest.mark.parametrize(("affordable", "reached"), [(1e9, 2_048), (1, 1_024)])
    def test_less_far(
        self, long_checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch, affordable: float, reached: int
    ) -> None:
        monkeypatch.setattr(make, "AFFORDABLE", affordable)
        known = CheckpointFunction(long_checkpoint)
        passport = make_passport(known)
        line = f"The same function for texts of up to {reached:,} tokens, the longest that were tried."
        assert verify_with(passport, known).line == line

    def test_what_is_refused_was_not_tried(self, long_checkpoint: Checkpoint) -> None:
        passport = make_passport(CheckpointFunction(long_checkpoint))
        with endpoint_of(Served(refusing(long_checkpoint, 600))) as endpoint:
            report = verify_with(passport, endpoint)
        assert report.line.startswith("The same function for texts of up to 513 tokens, the longest that were tried; ")


def after(checkpoint: Checkpoint, most: int, wrong: Callable[[np.ndarray, int], np.ndarray]) -> Served:
    encode = faithful(checkpoint)

    def answer(texts: list[str]) -> np.ndarray:
        rows = encode(texts)
        return np.concatenate([rows[:most], wrong(rows, most)]) if len(texts) > most else rows

    return Served(answer)


WRONG_ROWS: dict[str, tuple[int, Callable[[np.ndarray, int], np.ndarray]]] = {
    "those of the first after 32": (
        32,
        lambda rows, most: rows[: len(rows) - most][np.arange(len(rows) - most) % most],
    ),
    "shifted after 64": (64, lambda rows, most: np.roll(rows[most:], 1, axis=0)),
    "zeros after 128": (128, lambda rows, most: 0 * rows[most:]),
    "turned around after 200": (200, lambda rows, most: -rows[most:]),
}


@pytest.mark.parametrize("name", mostly_slow(WRONG_ROWS, 1))
def test_rows_that_are_wrong_in_large_requests(served_checkpoint: Checkpoint, name: str) -> None:
    most, wrong = WRONG_ROWS[name]
    report = compared(served_checkpoint, after(served_checkpoint, most, wrong), with_explanation=False)
    problems = [one for one in report.findings if one.level == "problem"]
    assert [one.name for one in problems] == ["asked_request"]
    assert (
        f"gives the first {most} texts of a request their vectors, and those after them others" in problems[0].sentence
    )
    with endpoint_of(after(served_checkpoint, most, wrong)) as endpoint:
        found = check_served(endpoint, sample_material().part(0.05))
    assert "others in a request" in found.line


@pytest.mark.parametrize("most", mostly_slow([256, 100, 40, 24], (100, 24)))
def test_what_takes_no_more_is_tried_as_far_as_it_goes(served_checkpoint: Checkpoint, most: int) -> None:
    served = Served(faithful(served_checkpoint), most=most)
    report = compared(served_checkpoint, served)
    assert report.line == "The same function."
    tried = [one.how for one in report.asked if one.how.endswith("in a request")]
    assert tried == [f"with {size - 1} others in a request" for size in (256, 128, 64, 33) if size <= most][:1]
