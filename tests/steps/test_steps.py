"""Steps without a server: what a key is made of, what is found again, what lies in the files."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import pyarrow.parquet as pq
import pytest
from pydantic import BaseModel, ConfigDict

import embaudit_flows
from embaudit.measures import MEASURES
from embaudit.measures.impact.steps import PoisonedSide
from embaudit.measures.layers.steps import layer_statistics
from embaudit.measures.length import LengthRiseRow
from embaudit.measures.sticky.steps.files import Sample, TokenShard
from embaudit.pages.general import _mixed
from embaudit.steps import step as steps
from embaudit.steps.results import CheckpointSpec, Staged, StagedCorpus, versions_of
from embaudit.steps.staging.stage import read_rows
from embaudit.steps.step import NotStaged, Outputs, Step, key_part, only_staged, part_of, step
from embaudit.steps.tables import AuditCorpusRow
from embaudit.system.installed import content_key
from embaudit.words.errors import StorageError
from embaudit_flows.plan import library_versions
from embaudit_tasks.steps import GPU_TAG, task_of

NUMBERS = {"number": "int64"}
SPEC = CheckpointSpec(reference="team/model", checkpoint_id="c0ffee", device="cuda:0", dtype="float32")
SCORES = Staged(table="score", path="/here/staging/sticky/0123456789abcdef/score-00000.parquet", rows=3, seconds=1.5)
CORPUS = StagedCorpus(
    name="sts", corpus_id="beef", kind="pairs", source="sample", rows=3, report="3 rows", files=(SCORES,)
)


class Knobs(BaseModel):
    model_config = ConfigDict(frozen=True)

    copies: int = 8
    share: float = 0.5
    shown: bool = True


calls: list[str] = []


@pytest.fixture(autouse=True)
def _no_calls() -> Iterator[None]:
    calls.clear()
    yield
    calls.clear()


def tiny_step(version: int = 1, name: str = "count", tables: tuple[str, ...] = ("number", "square")) -> Step[Any]:
    def count(
        out: Outputs,
        spec: CheckpointSpec,
        corpus: StagedCorpus,
        scores: dict[str, Staged],
        settings: Knobs,
        seed: int = 0,
        total: int = 0,
    ) -> None:
        calls.append("count")
        out.columns("number", [{"number": [1, 2]}, {"number": [3]}], NUMBERS, encodes=7, detail=lambda: {"most": 3})
        out.rows("square", [{"number": number**2} for number in (1, 2, 3)], NUMBERS, detail={"by": {"half": 0.5}})

    count.__name__ = name
    made = step(
        "counts", version=version, tables=tables, name="count", not_in_key=("total",), reads=("copies", "share")
    )
    return made(count)


GIVEN: dict[str, Any] = {"spec": SPEC, "corpus": CORPUS, "scores": {"a": SCORES}, "settings": Knobs()}


def staged(table: str, key: str) -> Staged:
    return SCORES.model_copy(update={"table": table, "path": f"/here/staging/sticky/{key}/{table}-00000.parquet"})


def test_a_file_keeps_the_versions_that_it_was_computed_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Found again or computed from, whatever is installed by then."""
    count = tiny_step()
    monkeypatch.setattr(steps, "versions_here", lambda: {"torch": "2.12.0", "numpy": "2.4.0"})
    made = count.compute(str(tmp_path), **GIVEN)
    monkeypatch.setattr(steps, "versions_here", lambda: {"torch": "2.13.0", "numpy": "2.4.0"})
    found = count.compute(str(tmp_path), **GIVEN)
    assert found == made
    assert {tuple(part.versions.items()) for part in found} == {(("torch", "2.12.0"), ("numpy", "2.4.0"))}
    (number, _) = count.compute(str(tmp_path), **{**GIVEN, "scores": {"a": found[0]}})
    assert number.versions == {"torch": "2.12.0, 2.13.0", "numpy": "2.4.0"}, "and of what it was computed from"
    assert versions_of([found[0], number]) == number.versions
    assert library_versions(found)["torch"] == "2.12.0"
    assert library_versions([])["torch"] == version("torch"), "if nothing says otherwise"


def test_a_page_says_which_measure_was_computed_with_which_version(runs_of_two_versions: list[dict[str, Any]]) -> None:
    assert _mixed(runs_of_two_versions) == {"torch": "2.12.0 (sticky); 2.13.0 (socm, layers)"}


@pytest.fixture
def runs_of_two_versions() -> list[dict[str, Any]]:
    versions = {"sticky": "2.12.0", "socm": "2.13.0", "layers": "2.13.0"}
    old = {"measure": "length", "libraries": None}
    return [
        *({"measure": name, "libraries": json.dumps({"torch": one, "numpy": "2.4"})} for name, one in versions.items()),
        old,
    ]


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"spec": SPEC.model_copy(update={"checkpoint_id": "decaf"})}, id="checkpoint"),
        pytest.param({"spec": SPEC.model_copy(update={"device": "cpu"})}, id="kind of device"),
        pytest.param({"spec": SPEC.model_copy(update={"dtype": "bfloat16"})}, id="precision"),
        pytest.param({"corpus": CORPUS.model_copy(update={"corpus_id": "f00d"})}, id="content of a corpus"),
        pytest.param({"corpus": CORPUS.model_copy(update={"name": "other"})}, id="name of a corpus"),
        pytest.param({"scores": {"a": staged("score", "fedcba9876543210")}}, id="content of a file"),
        pytest.param({"scores": {"a": staged("rank", "0123456789abcdef")}}, id="another table of that step"),
        pytest.param({"scores": {"b": SCORES}}, id="what a file is for"),
        pytest.param({"scores": {"a": SCORES, "b": SCORES}}, id="one file more"),
        pytest.param({"settings": Knobs(copies=9)}, id="a setting that is read"),
        pytest.param({"seed": 1}, id="seed"),
    ],
)
def test_what_makes_another_key(changed: dict[str, Any]) -> None:
    count = tiny_step()
    assert count.key(**GIVEN) != count.key(**{**GIVEN, **changed})


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"spec": SPEC.model_copy(update={"device": "cuda:1"})}, id="another GPU"),
        pytest.param({"spec": SPEC.model_copy(update={"reference": "/a/copy"})}, id="name of the checkpoint"),
        pytest.param({"corpus": CORPUS.model_copy(update={"source": "/a/file.csv", "files": ()})}, id="its source"),
        pytest.param(
            {"scores": {"a": SCORES.model_copy(update={"path": SCORES.path.replace("/here/", "s3://bucket/")})}},
            id="place of a file",
        ),
        pytest.param({"scores": {"a": SCORES.model_copy(update={"seconds": 9.0, "rows": 9})}}, id="what a file cost"),
        pytest.param({"settings": Knobs(shown=False)}, id="a setting that is not read"),
        pytest.param({"total": 12}, id="a bar's total"),
        pytest.param({"seed": 0}, id="a default, spelled out"),
    ],
)
def test_what_makes_the_same_key(changed: dict[str, Any]) -> None:
    count = tiny_step()
    assert count.key(**GIVEN) == count.key(**{**GIVEN, **changed})


def test_what_a_model_shows_and_does_not_count_is_no_part_of_a_key() -> None:
    shard = TokenShard(token_ids=(3, 5), label="scan", number=0, total=2)
    assert key_part(shard) == key_part(shard.model_copy(update={"label": "pilot", "number": 7, "total": 90}))
    assert key_part(shard) != key_part(shard.model_copy(update={"token_ids": (3,)}))


@pytest.mark.parametrize(
    ("one", "counted", "shown"),
    [
        pytest.param(
            Sample(sentences=SCORES, pairs=SCORES, similarity=SCORES, copies=8, seed=0),
            {"sentences": staged("x", "ab"), "pairs": staged("x", "ab"), "similarity": staged("x", "ab")}
            | {"copies": 4, "seed": 1},
            {},
            id="sample",
        ),
        pytest.param(
            PoisonedSide(material=SCORES, side="text", token_id=7, seed=0, corpus="sts", token="the"),
            {"material": staged("x", "ab"), "side": "first", "token_id": None, "seed": 1},
            {"corpus": "wikipedia", "token": "a"},
            id="side of a task",
        ),
    ],
)
def test_arguments_that_belong_together_are_a_key_like_arguments_alone(
    one: BaseModel, counted: dict[str, Any], shown: dict[str, Any]
) -> None:
    assert counted.keys() | shown.keys() == type(one).model_fields.keys()
    keys = [content_key(one=key_part(one.model_copy(update={name: value}))) for name, value in counted.items()]
    assert len({content_key(one=key_part(one)), *keys}) == 1 + len(counted)
    assert key_part(one.model_copy(update=shown)) == key_part(one)


def test_another_version_and_another_step_have_other_keys() -> None:
    keys = {tiny_step().key(**GIVEN), tiny_step(version=2).key(**GIVEN), tiny_step(name="tally").key(**GIVEN)}
    assert len(keys) == 3


def test_a_key_does_not_hang_on_how_the_arguments_were_given() -> None:
    count = tiny_step()
    assert count.key(*GIVEN.values()) == count.key(**dict(reversed(GIVEN.items())))


@pytest.mark.parametrize("value", [Path("/a/file"), object(), {1, 2}, lambda: None, b"bytes"])
def test_a_value_that_does_not_say_what_it_holds_is_refused(value: Any) -> None:
    with pytest.raises(TypeError, match=type(value).__name__):
        key_part([value])


def test_a_step_cannot_read_settings_that_its_key_does_not_hold() -> None:
    whole = Knobs()
    part = part_of(whole, ("copies", "share"))
    assert isinstance(part, Knobs)
    assert (part.copies, part.share) == (8, 0.5)
    with pytest.raises(AttributeError, match="shown"):
        _ = part.shown
    assert whole.shown


def test_an_argument_to_leave_out_must_be_one() -> None:
    with pytest.raises(TypeError, match="has no argument 'total'"):

        @step("counts", version=1, tables=("number",), name="count", not_in_key=("total",))
        def count(out: Outputs, seed: int) -> None: ...


def test_files_are_found_again_and_say_what_they_cost(tmp_path: Path) -> None:
    count = tiny_step()
    first = count.compute(str(tmp_path), **GIVEN)
    assert [part.table for part in first] == ["number", "square"]
    assert {part.path for part in first} == {str(path) for path in tmp_path.rglob("*.parquet")}
    assert {part.key for part in first} == {count.key(**GIVEN)}
    assert [part.rows for part in first] == [3, 3]
    assert [part.encodes for part in first] == [7, 0]
    assert [part.detail for part in first] == [{"most": 3}, {"by": {"half": 0.5}}]
    assert all(part.seconds > 0 for part in first)
    assert [row["number"] for row in read_rows([first[1].path])] == [1, 4, 9]
    again = count.compute(str(tmp_path), **GIVEN)
    assert again == first
    # An audit does not count their seconds a second time.
    assert ([part.is_reused for part in first], [part.is_reused for part in again]) == ([False] * 2, [True] * 2)
    # Wherever they were brought.
    tmp_path.rename(tmp_path.with_name("elsewhere"))
    elsewhere = count.compute(str(tmp_path.with_name("elsewhere")), **GIVEN)
    assert [part.detail for part in elsewhere] == [part.detail for part in first]
    assert calls == ["count"]


@pytest.mark.parametrize("gone", [0, 1])
def test_a_step_of_which_a_file_is_gone_runs_again(tmp_path: Path, gone: int) -> None:
    count = tiny_step()
    first = count.compute(str(tmp_path), **GIVEN)
    other = count.compute(str(tmp_path), **{**GIVEN, "seed": 1})
    Path(first[gone].path).unlink()
    again = count.compute(str(tmp_path), **GIVEN)
    assert [part.model_copy(update={"seconds": 0}) for part in again] == [
        part.model_copy(update={"seconds": 0}) for part in first
    ]
    assert count.compute(str(tmp_path), **{**GIVEN, "seed": 1}) == other
    assert len(calls) == 3


def test_a_file_of_before_a_column_was_declared_is_made_again(tmp_path: Path) -> None:
    @step("read", version=1, tables=(AuditCorpusRow,), name="read")
    def read(out: Outputs) -> None:
        calls.append("read")
        out.rows(AuditCorpusRow, [{"name": "sts", "corpus_id": "c"}])

    (made,) = read.compute(str(tmp_path))
    assert read.compute(str(tmp_path)) == [made]
    whole = pq.read_table(made.path)
    record = pq.read_metadata(made.path).metadata
    pq.write_table(whole.drop_columns(["corpus_id"]).replace_schema_metadata(record), made.path)
    with pytest.raises(NotStaged), only_staged():
        read.compute(str(tmp_path))
    read.compute(str(tmp_path))
    assert pq.read_table(made.path) == whole
    assert calls == ["read", "read"]


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def without_record(path: Path) -> None:
    pq.write_table(pq.read_table(path).replace_schema_metadata(None), path)


def with_another_record(path: Path) -> None:
    table = pq.read_table(path)
    pq.write_table(table.replace_schema_metadata({"embaudit": "{"}), path)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (cut_short, r"cannot be read"),
        (without_record, r"cannot be read \(it has no record of how it was made\)"),
        (with_another_record, r"cannot be read \(its record of how it was made is unreadable: .*\)"),
    ],
)
def test_a_broken_file_is_named_and_not_replaced(tmp_path: Path, damage: Callable[[Path], None], words: str) -> None:
    count = tiny_step()
    broken = Path(count.compute(str(tmp_path), **GIVEN)[1].path)
    damage(broken)
    with pytest.raises(StorageError, match=words) as refused:
        count.compute(str(tmp_path), **GIVEN)
    assert str(broken) in str(refused.value)
    assert "Delete that file and run the same command again" in str(refused.value)
    broken.unlink()
    assert count.compute(str(tmp_path), **GIVEN)


def test_a_declared_table_that_was_not_staged_is_a_bug(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"declares \['cube', 'number', 'square'\]"):
        tiny_step(tables=("number", "square", "cube")).compute(str(tmp_path), **GIVEN)


def test_a_table_without_rows_has_its_columns(tmp_path: Path) -> None:
    @step("length", version=1, tables=(LengthRiseRow,), name="rises")
    def rises(out: Outputs, seed: int) -> None:
        out.rows(LengthRiseRow, [])

    (empty,) = rises.compute(str(tmp_path), 1)
    assert empty.table == "length_rise"
    assert empty.rows == 0
    assert pq.read_schema(empty.path).names == list(LengthRiseRow.table.schema)


def test_a_task_on_a_gpu_is_found_by_its_tag() -> None:
    on_cpu = {**GIVEN, "spec": SPEC.model_copy(update={"device": "cpu"})}
    assert GPU_TAG in task_of(tiny_step(), **GIVEN).tags
    assert GPU_TAG not in task_of(tiny_step(), **on_cpu).tags


def test_flows_and_steps_import_nothing_heavy() -> None:
    """What is heavy is imported where it is used."""
    modules = [module.name for module in iter_modules(embaudit_flows.__path__, "embaudit_flows.")]
    # A small measure has its step, its findings and its section in one file.
    either = {name: [f"embaudit.measures.{name}.{part}" for part in ("steps", "work")] for name in MEASURES}
    modules += [next(filter(find_spec, names)) for names in either.values()]
    code = f"import sys, {', '.join(modules)}; print(*sorted({{m.split('.')[0] for m in sys.modules}}))"
    imported = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert "prefect" in imported.split()
    assert not {"torch", "transformers", "sklearn", "great_expectations", "ot", "bm25s"} & set(imported.split())


def test_a_worker_process_gets_a_step_by_its_name() -> None:
    assert pickle.loads(pickle.dumps(layer_statistics)) is layer_statistics
