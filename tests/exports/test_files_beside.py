"""Files beside the weights: which are there, what is wrong with them, and that one that is broken hides no other."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from fake_hub import COMMIT, FakeHub
from onnx import TensorProto, helper, numpy_helper
from onnx_files import changed_onnx, external_onnx, write_onnx
from some_rows import mostly_slow
from tiny import tiny_bert

from embaudit.checkpoint import load_checkpoint
from embaudit.checkpoint.files import exports_of
from embaudit.checkpoint.onnx_file import read_onnx
from embaudit.declared.rule import Finding
from embaudit.measures.quality.material import Material, sample_material
from embaudit.questions.check.check import check
from embaudit.questions.exports.files import export_findings
from embaudit.words.errors import CheckpointError

POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 90405214\n"


@pytest.fixture
def place(folder: Path, exported: Path, tmp_path: Path) -> Path:
    """A copy of the checkpoint with a sound file in its folder onnx."""
    copied = Path(shutil.copytree(folder, tmp_path / "checkpoint"))
    (copied / "onnx").mkdir()
    shutil.copy(exported, copied / "onnx" / "model.onnx")
    return copied


def found_in(place: Path, figures: dict[str, Any] | None = None) -> list[Finding]:
    return export_findings(load_checkpoint(str(place)), {} if figures is None else figures)


def cut(file: Path, part: float) -> None:
    os.truncate(file, int(file.stat().st_size * part))


def without_data(file: Path) -> None:
    external_onnx(file, file)
    file.with_name(f"{file.name}_data").unlink()


def with_half_of_its_data(file: Path) -> None:
    external_onnx(file, file)
    cut(file.with_name(f"{file.name}_data"), 0.5)


def with_a_pointer_for_data(file: Path) -> None:
    external_onnx(file, file)
    file.with_name(f"{file.name}_data").write_text(POINTER)


def operator(name: str, domain: str = "") -> Callable[[Path], None]:
    def change(model: Any) -> None:
        node = next(node for node in model.graph.node if node.op_type == "MatMul")
        node.op_type, node.domain = name, domain
        if domain:
            model.opset_import.append(helper.make_opsetid(domain, 1))

    return lambda file: changed_onnx(file, file, change) and None


def a_model(inputs: list[Any], outputs: list[Any], nodes: list[Any]) -> Callable[[Path], None]:
    model = helper.make_model(
        helper.make_graph(nodes, "graph", inputs, outputs), opset_imports=[helper.make_opsetid("", 17)], ir_version=8
    )
    return lambda file: file.write_bytes(model.SerializeToString()) and None


IDS = helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["b", "n"])
LOGITS = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["b", "n", 1])
TEXT = helper.make_tensor_value_info("text", TensorProto.STRING, ["b"])

BROKEN: dict[str, tuple[Callable[[Path], Any], str, str]] = {
    "a pointer": (lambda file: file.write_text(POINTER), "look", "git-lfs pointer"),
    "nothing": (lambda file: file.write_bytes(b""), "look", "is empty"),
    "a web page": (lambda file: file.write_text("<!DOCTYPE html><html>"), "look", "web page"),
    "zeros": (
        lambda file: file.write_bytes(bytes(5_000)),
        "look",
        "no whole ONNX file: what should be a field is none",
    ),
    "text": (lambda file: file.write_text("model\n" * 100), "look", "no whole ONNX file"),
    "cut off": (lambda file: cut(file, 0.5), "look", "it ends in the middle"),
    "a byte short": (lambda file: os.truncate(file, file.stat().st_size - 1), "look", "it ends in the middle"),
    "weights missing": (without_data, "look", "has its weights in model_O3.onnx_data, which is missing"),
    "weights cut off": (with_half_of_its_data, "look", "beyond its end"),
    "weights a pointer": (with_a_pointer_for_data, "look", "git-lfs pointer"),
    "an unknown operator": (operator("MatMulOfMine"), "not measured", "MatMulOfMine"),
    "an operator of its own": (operator("Attention", "my.own"), "not measured", "my.own"),
    "texts in": (
        a_model([TEXT], [LOGITS], [helper.make_node("Cast", ["text"], ["logits"], to=TensorProto.FLOAT)]),
        "not measured",
        "needs text",
    ),
    "logits out": (
        a_model(
            [IDS],
            [LOGITS],
            [
                helper.make_node("Cast", ["input_ids"], ["ids"], to=TensorProto.FLOAT),
                helper.make_node("Unsqueeze", ["ids", "axis"], ["logits"]),
                helper.make_node("Constant", [], ["axis"], value=numpy_helper.from_array(np.array([2]))),
            ][::-1],
        ),
        "not measured",
        "neither states nor a vector, but logits",
    ),
}


@pytest.mark.parametrize("name", mostly_slow(BROKEN, 4))
def test_a_broken_file_is_named_and_hides_no_other(name: str, place: Path) -> None:
    breaks, level, words = BROKEN[name]
    file = place / "onnx" / "model_O3.onnx"
    shutil.copy(place / "onnx" / "model.onnx", file)
    breaks(file)
    found = found_in(place)
    [sound] = [finding for finding in found if finding.name == "export_same"]
    assert "onnx/model.onnx gives" in sound.sentence
    [broken] = [finding for finding in found if finding.name != "export_same"]
    assert (broken.level, "model_O3.onnx" in broken.sentence) == (level, True), broken
    assert words in broken.sentence
    assert broken.advice


def escaping(location: str, where: str = "initializer") -> Callable[[Any], None]:
    """Moves a tensor of the model to another file."""

    def change(model: Any) -> None:
        tensor = TensorProto(name="stolen", data_type=TensorProto.FLOAT, dims=[2], data_location=TensorProto.EXTERNAL)
        tensor.external_data.add(key="location", value=location)
        node = model.graph.node[0]
        if where == "initializer":
            model.graph.initializer.append(tensor)
        elif where == "attribute":
            node.attribute.append(helper.make_attribute("value", tensor))
        elif where == "attributes":
            node.attribute.append(helper.make_attribute("values", [tensor]))
        elif where == "nested graph":
            inner = helper.make_graph([], "inner", [], [], initializer=[tensor])
            outer = helper.make_node("If", ["x"], ["y"], then_branch=inner)
            node.attribute.append(helper.make_attribute("body", helper.make_graph([outer], "outer", [], [])))
        elif where == "sparse":
            sparse = onnx.SparseTensorProto(values=tensor)
            model.graph.sparse_initializer.append(sparse)
        elif where == "function":
            inside = helper.make_node("Constant", [], ["y"], value=tensor)
            model.functions.append(helper.make_function("mine", "F", [], ["y"], [inside], []))
        elif where == "training":
            model.training_info.add().algorithm.initializer.append(tensor)
        else:  # one place after another: what is read last is not all that is there
            tensor.external_data.add(key="location", value="model.onnx")
            model.graph.initializer.append(tensor)

    return change


OUTSIDE = (
    *("../../secret", "/etc/passwd", "sub/../../../secret", "..\\..\\secret", "C:\\secret", "\\\\host\\share", ""),
    "a\0b",
)
PLACES = ("attribute", "attributes", "nested graph", "sparse", "function", "training", "twice")


@pytest.mark.parametrize(
    ("location", "where"),
    mostly_slow(
        [*((location, "initializer") for location in OUTSIDE), *(("../../secret", where) for where in PLACES)], 4
    ),
)
def test_weights_outside_the_checkpoint_are_not_read(location: str, where: str, place: Path) -> None:
    (place.parent / "secret").write_bytes(bytes(8))
    changed_onnx(place / "onnx" / "model.onnx", place / "onnx" / "hostile.onnx", escaping(location, where))
    found = found_in(place)
    [hostile] = [finding for finding in found if finding.name == "export_unsafe"]
    assert hostile.level == "problem"
    assert "hostile.onnx reads weights from outside the checkpoint" in hostile.sentence
    assert [finding.level for finding in found if finding is not hostile] == ["ok"]


def test_a_link_that_leaves_the_checkpoint_is_not_followed(place: Path) -> None:
    file = external_onnx(place / "onnx" / "model.onnx", place / "onnx" / "linked.onnx")
    data = file.with_name("linked.onnx_data")
    data.rename(place.parent / "elsewhere")
    data.symlink_to(place.parent / "elsewhere")
    [finding] = [finding for finding in found_in(place) if finding.name != "export_same"]
    assert finding.name == "export_unsafe"


def test_links_of_the_hubs_cache_are_followed(place: Path) -> None:
    blobs = place.parent / "blobs"
    blobs.mkdir()
    external_onnx(place / "onnx" / "model.onnx", place / "onnx" / "cached.onnx")
    for file in (place / "onnx" / "cached.onnx", place / "onnx" / "cached.onnx_data"):
        file.rename(blobs / file.name)
        file.symlink_to(blobs / file.name)
    file = place / "onnx" / "cached.onnx"
    assert read_onnx(file, place).others == ("cached.onnx_data",)


@pytest.mark.parametrize("seed", range(40))
def test_a_damaged_file_is_read_or_refused_and_nothing_else(seed: int, exported: Path, tmp_path: Path) -> None:
    data = bytearray(exported.read_bytes())
    chance = np.random.default_rng(seed)
    # Tags, lengths and names are at the ends of what is small.
    for place in chance.integers(0, len(data) if seed % 2 else 400, 20):
        data[place] = int(chance.integers(256))
    file = tmp_path / "model.onnx"
    file.write_bytes(bytes(data))
    try:
        read_onnx(file, tmp_path)
    except CheckpointError as error:
        assert error.next_step  # noqa: PT017


OTHERS = {
    "openvino/openvino_model.xml": ("OpenVINO", "--with-backend openvino"),
    "model-Q4_K_M.gguf": ("GGUF", "llama-server --embedding -m"),
    "tf_model.h5": ("TensorFlow", "--with http://localhost:8080"),
    "flax_model.msgpack": ("Flax", "--with http://localhost:8080"),
    "rust_model.ot": ("Rust", "--with http://localhost:8080"),
    "onnx/model.ort": ("ORT", "--with http://localhost:8080"),
    "coreml/model.tflite": ("TensorFlow Lite", "--with http://localhost:8080"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_not_run_here_is_named_with_what_would_measure_it(name: str, folder: Path, tmp_path: Path) -> None:
    place = Path(shutil.copytree(folder, tmp_path / "checkpoint"))
    file = place / name
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(b"something")
    [finding] = found_in(place)
    assert (finding.level, finding.name) == ("not measured", "export_not_measured")
    assert f"Beside the weights lies {name} ({OTHERS[name][0]})" in finding.sentence
    assert OTHERS[name][1] in finding.advice
    file.write_text(POINTER)
    [finding] = found_in(place)
    assert (finding.level, finding.name) == ("look", "export_unreadable")


def test_without_onnxruntime_files_are_named(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    (place / "onnx" / "model_O3.onnx").write_text(POINTER)
    broken, finding = found_in(place)
    assert broken.name == "export_unreadable"
    assert finding.level == "not measured"
    assert "onnx/model.onnx (ONNX)" in finding.sentence
    assert "pip install 'embaudit[onnx]'" in finding.advice


def test_nothing_is_found_or_imported_where_no_such_file_is(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held = "embaudit.questions.exports.held"
    monkeypatch.delitem(sys.modules, held, raising=False)
    assert found_in(folder) == []
    assert held not in sys.modules


def test_what_lies_on_the_hub_is_named_and_not_downloaded(hub: FakeHub, place: Path) -> None:
    hub.repositories["someone/tiny"] = place
    figures: dict[str, Any] = {}
    [finding] = export_findings(load_checkpoint("someone/tiny"), figures)
    assert (finding.level, finding.name) == ("not measured", "export_not_measured")
    assert "On the hub beside the weights lies onnx/model.onnx (ONNX)" in finding.sentence
    assert f"hf download someone/tiny --revision {COMMIT} --local-dir tiny && embaudit check ./tiny" in finding.advice
    assert not any("model.onnx" in request for request in hub.requests)
    checkpoint = load_checkpoint("someone/tiny")
    hub.status = 503
    assert export_findings(checkpoint, figures) == []


def test_files_of_another_checkpoint_below_are_not_this_ones(place: Path) -> None:
    shutil.copytree(place, place / "checkpoint-500")
    (place / ".cache").mkdir()
    shutil.copy(place / "onnx" / "model.onnx", place / ".cache" / "model.onnx")
    assert [export.name for export in exports_of(place)] == ["onnx/model.onnx"]
    assert [export.name for export in exports_of(place, "onnx")] == ["onnx/model.onnx"]


def limited(file: Path, limit: int) -> None:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(file))
    tokenizer.enable_truncation(limit)
    tokenizer.save(str(file))


def cased(file: Path, _: int) -> None:
    from tokenizers import Tokenizer, normalizers

    tokenizer = Tokenizer.from_file(str(file))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False)
    tokenizer.save(str(file))


@pytest.mark.parametrize(
    ("change", "limit", "words"),
    [
        (limited, 32, "onnx/tokenizer.json cuts texts after 32 tokens, where the checkpoint reads 64"),
        (limited, 64, ""),
        (cased, 0, "onnx/tokenizer.json makes other tokens of"),
        (lambda file, _: file.write_text("{"), 0, "onnx/tokenizer.json cannot be read"),
        (lambda file, _: file.write_text(POINTER), 0, "git-lfs pointer"),
    ],
    ids=["half of the limit", "the limit", "another case", "broken", "a pointer"],
)
def test_a_tokenizer_beside_an_export_is_held_against_the_checkpoints(
    change: Callable[[Path, int], Any], limit: int, words: str, place: Path
) -> None:
    file = Path(shutil.copy(place / "tokenizer.json", place / "onnx"))
    change(file, limit)
    found = [finding for finding in found_in(place) if finding.name == "export_tokenizer"]
    assert [words in finding.sentence for finding in found] == ([True] if words else [])


def test_a_check_says_what_the_file_beside_the_weights_is(place: Path, tmp_path: Path) -> None:
    other = load_checkpoint(str(tiny_bert(tmp_path / "older", seed=7)))
    write_onnx(other, place / "onnx" / "model.onnx")
    sample = sample_material()
    small = Material((sample.pairs[0].first(40),), (sample.collections[0].first(8, 20)[0],))
    report = check(str(place), material=small)
    [finding] = [finding for finding in report.findings if finding.name == "export_is_another"]
    assert "onnx/model.onnx (float32, pytorch" in finding.sentence
    assert "Its weights are of another revision" in finding.sentence
    assert f"--with {place}/onnx/model.onnx --with-backend onnx" in finding.advice
    assert [row["name"] for row in report.figures["exports"]] == ["onnx/model.onnx"]
    # The rest of the check ran.
    assert {"one_function", "score_scale"} <= {finding.name for finding in report.findings}
