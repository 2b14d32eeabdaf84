"""``embaudit fingerprint``: a model of one's own is named, by its checkpoint and by its stores, and no other is."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pytest
from commands import run_here
from some_rows import mostly_slow

import embaudit
from benchmarks.serving.server import Served, serving
from embaudit.checkpoint import Encoder, LoadOptions, load_checkpoint, resolve
from embaudit.questions.fingerprint.make import sample_texts
from embaudit.questions.fingerprint.question import FingerprintQuestion
from embaudit.questions.vectors.builder import own_file, read_fingerprints, shipped_fingerprints
from embaudit.words.errors import CorpusError, EmbauditError, MeasureError, UsageError

sys.path.append(str(Path(__file__).resolve().parent))
from test_fingerprint import SENTENCES, D, rows_of

MINILM = "packaged:all-MiniLM-L6-v2"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where commands are typed, with a home of its own."""
    monkeypatch.setenv("EMBAUDIT_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def saved(name: str, vectors: np.ndarray, dtype: type = np.float32) -> str:
    np.save(name, vectors.astype(dtype))
    return name


def typed(*arguments: str) -> tuple[int, str, str]:
    done = run_here(arguments, {**os.environ, "HF_HUB_OFFLINE": "1"}, Path.cwd())
    return done.returncode, " ".join(done.stdout.split()), " ".join(done.stderr.split())


def builders(store: str) -> list[tuple[str, str]]:
    """What is said of who built it."""
    return [(one.level, one.sentence) for one in embaudit.vectors(store).findings if one.name == "builder"]


def stores_of(model: str, count: int, rows: int = 40) -> list[str]:
    return [saved(f"{model} {n}.npy", rows_of(model, rows, n)) for n in range(count)]


def test_a_model_is_named_by_stores_that_it_built(folder: Path) -> None:
    unseen = saved("unseen.npy", rows_of("pointed a", 40, 100))
    assert builders(unseen) == []
    code, said, told = typed("fingerprint", *stores_of("pointed a", 3), "--name", "our-model")
    assert code == 0, told
    assert said.startswith(f"{folder}/home/fingerprints/our-model.json: ")
    assert "our-model: 256 numbers, from 120 vectors of 3 stores. It is known by the mean direction." in said
    assert "Left out one after another, 3 of 3 stores were named." in said
    assert said.endswith("Next: embaudit vectors STORE")
    [(level, sentence)] = builders(unseen)
    assert level == "ok"
    assert sentence.startswith("The vectors are those of our-model, by the mean direction of that model (")
    assert "; unrelated vectors at most .25)" in sentence
    for other in ("pointed b", "plain", "spread a"):
        assert builders(saved("other.npy", rows_of(other, 40, 100)))[0][1].startswith(
            "The vectors are those of no model"
        )


def test_what_a_fingerprint_is_of_is_kept_in_it_and_no_vector_is(folder: Path) -> None:
    stores = stores_of("pointed a", 3)
    made = embaudit.fingerprint(stores, name="our-model")
    [read] = read_fingerprints(own_file("our-model"))
    assert read.sources == tuple(stores) == made.sources
    assert (read.parts, read.owners, read.rows, read.embaudit) == ("stores", 3, 120, embaudit.__version__)
    assert own_file("our-model").stat().st_size < 8_000
    assert read.limit == pytest.approx(made.limit, abs=1e-3)


def test_a_store_s_collections_count_as_one_store(folder: Path) -> None:
    with duckdb.connect("both.duckdb") as connection:
        for n in range(2):
            rows = rows_of("spread a", 40, n).astype(np.float32).tolist()
            connection.execute(f"CREATE TABLE part{n} AS SELECT unnest($1::FLOAT[256][]) AS vector", [rows])
    made = embaudit.fingerprint("both.duckdb", name="our-model")
    assert (made.parts, made.measure, made.owners, made.stores, made.rows) == ("halves of a store", "spread", 1, 2, 80)


def test_one_store_is_enough_where_dimensions_tell_and_that_is_said() -> None:
    code, said, told = typed("fingerprint", *stores_of("spread a", 1, 80), "--name", "our-model")
    assert code == 0, told
    assert "Its limit is that of one store's two halves; more stores of other subjects make a better one." in said
    [(level, sentence)] = builders(saved("unseen.npy", rows_of("spread a", 40, 100)))
    assert (level, sentence[:37]) == ("ok", "The vectors are those of our-model, b")


def test_two_copies_of_a_store_are_one() -> None:
    [store] = stores_of("spread a", 1, 80)
    shutil.copy(store, "copy.npy")
    assert embaudit.fingerprint([store, "copy.npy"], name="our-model").parts == "halves of a store"


def test_rows_between_the_limit_and_others_are_not_called_another_model_s() -> None:
    embaudit.fingerprint(stores_of("pointed a", 2), name="our-model")
    rows, others = rows_of("pointed a", 40, 100), rows_of("plain", 40, 101)
    between = 0.55 * rows + others
    [(level, sentence)] = builders(saved("between.npy", np.concatenate([rows[:30], between[30:]])))
    assert level == "not measured"
    assert sentence.startswith(
        "Cannot tell who built the index from its vectors alone: 25% of the rows are somewhat like"
    )
    [(level, sentence)] = builders(saved("mixed.npy", np.concatenate([rows[:30], others[30:]])))
    assert level == "look"
    assert sentence.startswith("75% of 40 different vectors are those of our-model")


def test_one_s_own_stands_before_a_shipped_one_of_the_same_name() -> None:
    shipped = shipped_fingerprints()[0].model
    embaudit.fingerprint(stores_of("pointed a", 3), name=shipped)
    # Of another number of dimensions, both are known.
    assert shipped in builders(saved("other.npy", rows_of("plain", 40, 9)))[0][1]
    vectors = np.random.default_rng(0).standard_normal((40, shipped_fingerprints()[0].dimension))
    assert shipped in builders(saved("wide.npy", vectors))[0][1]


def test_two_names_of_one_model_are_both_said() -> None:
    stores = stores_of("pointed a", 3)
    embaudit.fingerprint(stores, name="first")
    code, said, _ = typed("fingerprint", *stores, "--name", "second")
    assert code == 0
    assert "All of these vectors are those of first, too: both will be named." in said
    [(_, sentence)] = builders(saved("unseen.npy", rows_of("pointed a", 40, 100)))
    assert sentence.startswith("The vectors are those of first (or of second), by the mean direction")


def test_another_model_is_told_apart_or_the_fingerprint_refused() -> None:
    stores = stores_of("pointed a", 3)
    made = embaudit.fingerprint(stores, name="a", other=stores_of("pointed b", 1))
    assert made.held_out is not None
    assert (made.held_out.wrongly, made.held_out.others) == (0, 1)
    [(_, sentence)] = builders(saved("unseen.npy", rows_of("pointed a", 40, 100)))
    assert "; other models of 256 numbers at most" in sentence
    same = saved("same.npy", rows_of("pointed a", 40, 50))
    with pytest.raises(MeasureError, match=r"Cannot tell b from other models.*by the mean direction") as raised:
        embaudit.fingerprint(stores, name="b", other=same)
    assert "without --other, both would be named" in raised.value.next_step
    assert not own_file("b").exists()


def test_other_dimensions_of_another_model_need_no_limit() -> None:
    made = embaudit.fingerprint(
        stores_of("pointed a", 3), name="a", other=saved("narrow.npy", rows_of("plain", 40, 1)[:, :100])
    )
    assert made.held_out is not None
    assert made.held_out.others == 0


REFUSED: dict[str, tuple[Callable[[], object], type[EmbauditError], str, str]] = {
    "too few rows": (
        lambda: embaudit.fingerprint(stores_of("pointed a", 3, 15), name="a"),
        MeasureError,
        "There are 45 different vectors of a, and a fingerprint takes 60",
        "Name more stores",
    ),
    "the subject's direction alone": (
        lambda: embaudit.fingerprint(stores_of("pointed a", 1, 80), name="a"),
        MeasureError,
        "Cannot tell a from other models by its vectors alone: by how much each dimension varies",
        "Name more stores that it built, of other subjects",
    ),
    "two models": (
        lambda: embaudit.fingerprint(
            [*stores_of("pointed a", 1), saved("b.npy", rows_of("pointed b", 40, 7))], name="a"
        ),
        MeasureError,
        "Cannot tell a from other models",
        "Name more stores",
    ),
    "two dimensions": (
        lambda: embaudit.fingerprint(
            [*stores_of("pointed a", 2), saved("narrow.npy", rows_of("plain", 40, 1)[:, :100])], name="a"
        ),
        CorpusError,
        "The vectors of narrow.npy have 100 numbers, and those of pointed a 0.npy 256",
        "Make a fingerprint of each model",
    ),
    "codes": (
        lambda: embaudit.fingerprint(saved("codes.npy", np.ones((80, 9)), np.int8), name="a"),
        CorpusError,
        "codes.npy holds no vectors of floating-point numbers",
        "not of codes",
    ),
    "a function beside stores": (
        lambda: embaudit.fingerprint([*stores_of("plain", 1), MINILM], name="a"),
        UsageError,
        f"{MINILM} is no store",
        "Name one function, or stores alone",
    ),
    "a name that is none": (
        lambda: embaudit.fingerprint(stores_of("plain", 1), name="../a"),
        UsageError,
        "name",
        "embaudit fingerprint --help",
    ),
    "nothing there": (
        lambda: embaudit.fingerprint("./nowhere", name="a"),
        EmbauditError,
        "nowhere",
        "",
    ),
    "a file that is something else": (
        lambda: (Path("notes.json").write_text("[]"), embaudit.fingerprint(MINILM, name="a", out="notes.json")),
        UsageError,
        "notes.json exists, and would be lost",
        "--out FILE",
    ),
    "another model's file": (
        lambda: (
            embaudit.fingerprint(stores_of("pointed a", 3), name="a", out="a.json"),
            embaudit.fingerprint(stores_of("pointed a", 3), name="b", out="a.json"),
        ),
        UsageError,
        "it is the fingerprint of a",
        "--out FILE",
    ),
}


@pytest.mark.parametrize(("call", "error", "happened", "next_step"), REFUSED.values(), ids=REFUSED)
def test_what_makes_no_fingerprint_is_refused_with_advice(
    call: Callable[[], object], error: type[EmbauditError], happened: str, next_step: str, folder: Path
) -> None:
    with pytest.raises(error) as raised:
        call()
    assert happened in raised.value.happened
    assert next_step in raised.value.next_step
    assert not list((folder / "home").rglob("*.json"))


DAMAGED = {
    "no JSON": "{",
    "another file": "[]",
    "a newer version": json.dumps({"format": "embaudit fingerprints", "version": 2}),
    "a lack": json.dumps({"format": "embaudit fingerprints", "version": 1, "fingerprints": [{"model": "a"}]}),
    "no number": '{"format": "embaudit fingerprints", "version": 1, "fingerprints": [{"limit": NaN}]}',
}


@pytest.mark.parametrize("text", DAMAGED.values(), ids=DAMAGED)
def test_a_file_that_cannot_be_read_is_named_and_the_others_are_used(text: str) -> None:
    embaudit.fingerprint(stores_of("pointed a", 3), name="our-model")
    path = own_file("broken")
    path.write_text(text, encoding="utf-8")
    found = [
        one
        for one in embaudit.vectors(saved("unseen.npy", rows_of("pointed a", 40, 9))).findings
        if one.name == "builder"
    ]
    assert {one.level for one in found} == {"ok", "not measured"}
    [broken] = [one for one in found if one.level == "not measured"]
    assert str(path) in broken.sentence
    assert broken.advice


@pytest.mark.parametrize(
    ("name", "value"),
    [("direction", [0.0] * D), ("spread", [1.0]), ("still", [D]), ("model", "a\x1b[31m"), ("limit", "x"), ("more", 1)],
)
def test_a_stranger_s_file_is_read_only_if_it_holds_together(name: str, value: object) -> None:
    embaudit.fingerprint(stores_of("pointed a", 3), name="a", out="a.json")
    content = json.loads(Path("a.json").read_text("utf-8"))
    content["fingerprints"][0][name] = value
    Path("b.json").write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(UsageError, match=r"b\.json is damaged"):
        read_fingerprints(Path("b.json"))


def test_a_file_written_elsewhere_is_known_once_it_lies_in_the_folder() -> None:
    code, said, _ = typed("fingerprint", *stores_of("pointed a", 3), "--name", "team/our model", "--out", "sent.json")
    assert code == 0
    unseen = saved("unseen.npy", rows_of("pointed a", 40, 100))
    assert builders(unseen) == []
    assert f"To have it known here: cp sent.json '{own_file('team/our model')}'" in said
    own_file("team/our model").parent.mkdir(parents=True)
    shutil.copy("sent.json", own_file("team/our model"))
    assert builders(unseen)[0][1].startswith("The vectors are those of team/our model")


def test_no_credentials_are_kept_of_an_endpoint(folder: Path) -> None:
    texts = [text for some in sample_texts().values() for text in some]
    rows = dict(zip(texts, rows_of("pointed a", len(texts), 1), strict=True))
    with serving(Served(lambda asked: np.array([rows[one] for one in asked]))) as address:
        with_secret = address.replace("http://", "http://me:geheimnis@")
        code, said, told = typed("fingerprint", with_secret, "--name", "served")
        assert code == 0, told
    assert f"Texts are sent to {address}: some 300 of the embedded sample" in told
    kept = "".join(one.read_text("utf-8") for one in (folder / "home" / "fingerprints").iterdir())
    assert "geheimnis" not in said + told + kept
    assert json.loads(kept)["fingerprints"][0]["sources"] == [address]
    question = FingerprintQuestion.of(sources="postgresql://me:geheimnis@h/d", name="a")
    assert "geheimnis" not in str(question._shown(question.sources))


@pytest.fixture(scope="module")
def random_network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """all-MiniLM-L6-v2's architecture (one of its layers) and tokenizer, with weights that nobody trained."""
    import torch
    from transformers import AutoConfig, AutoModel

    source = resolve(MINILM).folder
    folder = tmp_path_factory.mktemp("models") / "random"
    shutil.copytree(source, folder, ignore=shutil.ignore_patterns("*.safetensors", "*.bin", "*.onnx", "onnx"))
    torch.manual_seed(3)
    AutoModel.from_config(AutoConfig.from_pretrained(source, num_hidden_layers=1)).save_pretrained(folder)
    return folder


@pytest.mark.parametrize("is_trained", mostly_slow([False, True], 1))
def test_checkpoints_are_known_from_other_texts_than_the_sample_s_and_no_other_model_is_named(
    is_trained: bool, random_network: Path
) -> None:
    model, name = (MINILM, "our-minilm") if is_trained else (str(random_network), "untrained")
    code, said, told = typed("fingerprint", model, "--name", name, "--device", "cpu")
    assert code == 0, told
    assert f"{name}: 384 numbers, from 316 vectors of 6 kinds of text." in said
    assert "Left out one after another, 6 of 6 kinds of text were named." in said
    assert ("All of these vectors are those of all-MiniLM-L6-v2, too: both will be named." in said) is is_trained
    known_by = "(or of all-MiniLM-L6-v2, or of a model trained on" if is_trained else "by the mean direction"
    assert is_trained or "It is known by the mean direction." in said
    vectors = Encoder(load_checkpoint(model, LoadOptions(device="cpu"))).encode_texts(SENTENCES)
    [(_, sentence)] = builders(saved("vectors.npy", vectors))
    assert sentence.replace(",", "").startswith(f"The vectors are those of {name} {known_by}".replace(",", ""))
    rng = np.random.default_rng(0)
    rotation = np.linalg.qr(rng.standard_normal((384, 384)))[0]
    for changed in (vectors @ rotation, vectors[:, rng.permutation(384)], rng.standard_normal((40, 384))):
        assert builders(saved("changed.npy", changed))[0][1].startswith("The vectors are those of no model of 384")
