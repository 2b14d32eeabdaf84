"""The file: what is in it, read without embaudit, its schema, and every file that is none."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

import embaudit
from embaudit.checkpoint import Checkpoint, Encoder, LoadOptions, load_checkpoint
from embaudit.checkpoint.tokenizer import NO_LIMIT
from embaudit.embedders.checkpoint import CheckpointFunction
from embaudit.questions.parity.compare import ROLES
from embaudit.questions.passport.make import PURPOSES, canary_texts, make_passport
from embaudit.questions.passport.passport import Passport, checksum_of, passport_schema, read_passport, write_passport
from embaudit.words.errors import StorageError, UsageError

SCHEMA = Path(__file__).parents[2] / "docs" / "passport.schema.json"


def test_a_passport_is_read_as_it_was_written(tiny_passport: Passport, passport_file: Path) -> None:
    assert read_passport(passport_file) == tiny_passport


def test_its_vectors_are_the_checkpoints(passed: Checkpoint, passport_file: Path) -> None:
    canaries = json.loads(passport_file.read_text(encoding="utf-8"))["canaries"]
    by_kind: dict[str, list[str]] = {}
    for one in canaries:
        by_kind.setdefault(one["kind"], []).append(one["text"])
    texts = [text for kind, some in by_kind.items() if kind not in ROLES for text in some]
    expected = [*Encoder(passed).encode_texts(texts)]
    for kind, role in ROLES.items():
        expected += [*Encoder(passed.reading(role)).encode_texts(by_kind[kind])]
    for one, row in zip(canaries, expected, strict=True):
        content = base64.b64decode(one["vector"])
        assert struct.unpack(f"<{passed.dimension}f", content) == tuple(row.tolist())


def test_the_published_schema_is_that_of_the_code() -> None:
    assert json.loads(SCHEMA.read_text(encoding="utf-8")) == passport_schema(), "run: make docs"


def test_what_is_written_satisfies_the_schema_and_nothing_less_does(passport_file: Path) -> None:
    validator = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))
    jsonschema.Draft202012Validator.check_schema(validator.schema)
    content = json.loads(passport_file.read_text(encoding="utf-8"))
    validator.validate(content)
    for key in content:
        assert not validator.is_valid({name: value for name, value in content.items() if name != key}), key
    content["canaries"][0]["vector"] = "not base64!"
    assert not validator.is_valid(content)


def test_the_packaged_passport_is_small_and_says_what_the_checkpoint_declares(minilm: Checkpoint) -> None:
    passport = make_passport(CheckpointFunction(minilm), LoadOptions())
    assert len(json.dumps(passport.as_json(), indent=1)) < 200_000
    assert 50 <= len(passport.canaries) <= 70
    reading = passport.reading
    assert (reading.dimension, reading.is_normalised, reading.pooling, reading.max_length) == (384, True, "mean", 256)
    assert passport.checkpoint.id == minilm.checkpoint_id
    assert {"at the limit", "beyond the limit", "lengths", *PURPOSES} == set(passport.kinds)
    # Tokens that the tokenizer itself counts.
    long = [one for one in passport.canaries if one.kind.endswith("the limit")]
    assert [one.tokens for one in long] == [256, 257, 512]
    for one in long:
        assert len(minilm.tokenizer(one.text, truncation=False, verbose=False)["input_ids"]) == one.tokens


def test_every_canary_is_there_once_and_says_what_for(passed: Checkpoint) -> None:
    texts = canary_texts(passed)
    assert len({one.text for one in texts}) == len(texts)
    assert all(one.purpose for one in texts)
    # Its own prompt for queries, and a usual one for documents, of which it declares none.
    assert [one.text for one in texts if one.kind == "prompts in texts"] == [
        "find: where is the old bridge",
        "passage: The old bridge stands in the north of the town.",
    ]


@pytest.mark.parametrize(
    ("limit", "lengths"),
    [
        (20, {"at the limit": [20], "beyond the limit": [21, 40]}),
        (256, {"lengths": [24, 60, 129], "at the limit": [256], "beyond the limit": [257, 512]}),
        (8_192, {"lengths": [24, 60, 129, 257, 385, 513], "at the limit": [8_192], "beyond the limit": [9_216]}),
        # Nobody waits so long for a passport.
        (2_000_000, {"lengths": [24, 60, 129, 257, 385, 513, 65_536]}),
        (NO_LIMIT, {"lengths": [24, 60, 129, 257, 385, 513]}),
    ],
)
def test_long_texts_are_made_to_the_limit(passed: Checkpoint, limit: int, lengths: dict[str, list[int]]) -> None:
    checkpoint = replace(passed, limits=dict.fromkeys(passed.limits, limit))
    found: dict[str, list[int]] = {}
    for one in canary_texts(checkpoint):
        if one.kind not in PURPOSES:
            found.setdefault(one.kind, []).append(len(checkpoint.tokenizer(one.text, verbose=False)["input_ids"]))
    assert found == lengths


def test_settings_are_recorded_and_make_another_passport(passed_folder: Path, tiny_passport: Passport) -> None:
    options = LoadOptions(device="cpu", pooling="cls", max_length=32)
    other = make_passport(CheckpointFunction(load_checkpoint(str(passed_folder), options)), options)
    assert (other.settings.pooling, other.settings.max_length, other.settings.prompt) == ("cls", 32, None)
    assert (other.reading.pooling, other.reading.max_length) == ("cls", 32)
    assert other.checkpoint.id != tiny_passport.checkpoint.id


def test_a_passport_of_before_there_were_prompts_in_it_is_read(tiny_passport: Passport, tmp_path: Path) -> None:
    content = tiny_passport.as_json()
    del content["not_picked"]
    (tmp_path / "old.json").write_text(json.dumps({**content, "checksum": checksum_of(content)}))
    assert read_passport(tmp_path / "old.json") == tiny_passport


def test_the_same_checkpoint_gives_the_same_file(passed: Checkpoint, tiny_passport: Passport) -> None:
    again = make_passport(CheckpointFunction(passed), LoadOptions(device="cpu"))
    assert again.as_json() == tiny_passport.as_json()


def test_texts_without_a_vector_are_left_out(passed: Checkpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    encode = Encoder.encode_texts

    def zero_if_blank(self: Encoder, texts: list[str], *rest: Any) -> np.ndarray:
        return encode(self, texts, *rest) * np.array([[bool(text.strip())] for text in texts])

    monkeypatch.setattr(Encoder, "encode_texts", zero_if_blank)
    kinds = make_passport(CheckpointFunction(passed), LoadOptions(device="cpu")).kinds
    assert "plain" in kinds
    assert not {"blank", "empty"} & set(kinds)


def changed(change: Callable[[dict[str, Any]], object], *, is_signed: bool) -> Callable[[dict[str, Any]], str]:
    """The content after a change; with a checksum that fits it, as of a writer with a mistake."""

    def make(content: dict[str, Any]) -> str:
        change(content)
        if is_signed:
            content["checksum"] = checksum_of(content)
        return json.dumps(content)

    return make


BAD: dict[str, tuple[Callable[[dict[str, Any]], str | bytes], str]] = {
    "nothing": (lambda content: "", "not JSON"),
    "no JSON": (lambda content: "passport", "not JSON"),
    "cut short": (lambda content: json.dumps(content)[:-100], "not JSON"),
    "no text": (lambda content: b"\xff\xfe\x00\x01\x80", "not JSON"),
    "a list": (lambda content: "[1, 2]", "no passport"),
    "deep": (lambda content: "[" * 100_000, "not JSON"),
    "another format": (lambda content: '{"format": "sbom", "version": 1}', "no passport"),
    "a newer version": (changed(lambda content: content.update(version=2), is_signed=True), "newer embaudit"),
    "no version": (changed(lambda content: content.pop("version"), is_signed=True), 'its "version" is null'),
    "a text edited": (changed(lambda content: content["canaries"][0].update(text="x"), is_signed=False), "was changed"),
    "a tolerance edited": (
        changed(lambda content: content["tolerances"].update(same=0.5), is_signed=False),
        "was changed",
    ),
    "no checksum": (changed(lambda content: content.pop("checksum"), is_signed=False), "no checksum"),
    "no canaries": (changed(lambda content: content.update(canaries=[]), is_signed=True), "canaries"),
    "a key missing": (changed(lambda content: content.pop("reading"), is_signed=True), "reading: Field required"),
    "another dimension": (
        changed(lambda content: content["reading"].update(dimension=31), is_signed=True),
        "canary 0 has 32 numbers and not 31",
    ),
    "no base64": (
        changed(lambda content: content["canaries"][2].update(vector="AAA"), is_signed=True),
        "the vector of canary 2 is no base64 of float32",
    ),
    "NaN": (
        changed(
            lambda content: content["canaries"][1].update(
                vector=base64.b64encode(np.full(32, np.nan, "<f4").tobytes()).decode()
            ),
            is_signed=True,
        ),
        "the vector of canary 1 has NaN or is zero",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_passport_is_named(passport_file: Path, name: str) -> None:
    make, said = BAD[name]
    content = make(json.loads(passport_file.read_text(encoding="utf-8")))
    passport_file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(UsageError, match=r"passport\.json") as error:
        read_passport(passport_file)
    assert said in error.value.happened
    assert error.value.next_step
    assert ("Upgrade" in error.value.next_step) == (name == "a newer version")


def test_keys_of_a_later_embaudit_are_skipped(passport_file: Path, tiny_passport: Passport) -> None:
    content = json.loads(passport_file.read_text(encoding="utf-8")) | {"signature": "…"}
    content["checksum"] = checksum_of(content)
    passport_file.write_text(json.dumps(content))
    assert read_passport(passport_file) == tiny_passport


def test_a_file_that_is_not_there_or_a_folder(tmp_path: Path) -> None:
    for path in (tmp_path / "none.json", tmp_path):
        with pytest.raises(UsageError, match="Cannot read the passport"):
            read_passport(path)


def test_only_a_passport_of_the_same_checkpoint_is_replaced(
    tiny_passport: Passport, passport_file: Path, tmp_path: Path
) -> None:
    before = passport_file.read_bytes()
    write_passport(tiny_passport, passport_file)
    assert passport_file.read_bytes() == before
    checkpoint = tiny_passport.checkpoint.model_copy(update={"id": "other"})
    with pytest.raises(UsageError, match="passport of another checkpoint"):
        write_passport(tiny_passport.model_copy(update={"checkpoint": checkpoint}), passport_file)
    assert passport_file.read_bytes() == before
    notes = tmp_path / "notes.json"
    notes.write_text("mine")
    with pytest.raises(UsageError, match="exists, and would be lost"):
        # Before anything is loaded: there is no such checkpoint.
        embaudit.passport(tmp_path / "no-checkpoint", notes)
    assert notes.read_text() == "mine"


def test_a_place_that_cannot_be_written(tiny_passport: Passport, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="Cannot write the passport"):
        write_passport(tiny_passport, tmp_path / "file" / "passport.json")
