"""Stages on a tiny checkpoint: figures in a file each, nothing computed twice, nothing of a trial ever committed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.reproduction.bench import Bench
from benchmarks.reproduction.command import main, run
from benchmarks.reproduction.kept import commit, read
from embaudit.words.errors import UsageError

WORDS = ["river", "town", "war", "music", "sea", "ship", "king", "church", "family", "great", "north", "gold", "fire"]


def sentence(place: int) -> str:
    return " ".join(WORDS[(place * step + step) % len(WORDS)] for step in range(1, 5 + place % 6))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Real data's folders with few made-up texts."""
    folder = tmp_path_factory.mktemp("data")
    for name in ("std", "wikipedia"):
        (folder / name).mkdir()
    for name, count in (("minilm_scoring_pairs_5.json", 3), ("minilm_verification_pairs_250.json", 6)):
        pairs = [
            {"sentence1": sentence(place), "sentence2": sentence(place + 20), "similarity": "0.5"}
            for place in range(count)
        ]
        (folder / "std" / name).write_text(json.dumps(pairs))
    lines = [f"{sentence(place)} {place}" for place in range(30)]
    (folder / "wikipedia/wiki1m_sample.txt").write_text("\n".join(lines))
    return folder


@pytest.fixture
def bench(tiny_checkpoint: Path, data: Path, tmp_path: Path) -> Bench:
    return Bench(tmp_path / "out", data, "cpu", 12, 1, str(tiny_checkpoint))


def test_a_stage_that_is_there_is_not_run_again(
    bench: Bench, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = run(bench, ["layers"])
    assert [row["layer"] for row in first["layers"].figures["first_100"]] == [0, 1]
    assert first["layers"].limit == 12
    # Without its data it could not run.
    second = run(replace(bench, data=tmp_path / "nowhere"), ["layers"])
    assert second == first
    assert "layers: is there" in capsys.readouterr().err


def test_the_protocol_continues_where_it_stopped(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    found = run(bench, ["sticky"])["sticky"].figures
    assert found["scanned"] == 12
    assert found["candidates"] == sum(row["is_shortlisted"] for row in found["tokens"]) >= 1
    # Too few candidates for quartiles.
    assert found["threshold"] is None
    (bench.out / "sticky.json").unlink()
    shards = sorted(Path(bench.staging).glob("sticky/*/reference-*.parquet"))
    assert len(shards) == 2
    shards[0].unlink()
    encoded: list[int] = []

    def counted(encoder: object, inputs: object, tokens: list[str], *others: object) -> object:
        encoded.append(len(tokens))
        return distances(encoder, inputs, tokens, *others)

    from embaudit.measures.sticky import inspect

    distances = inspect.distances
    monkeypatch.setattr(inspect, "distances", counted)
    again = run(bench, ["sticky"])["sticky"].figures
    # The shard that was lost, and no other.
    assert len(encoded) == 1
    assert again == found


def test_other_random_places_change_only_the_random_third(bench: Bench) -> None:
    found = run(bench, ["seeds"])["seeds"].figures
    assert found["tokens"] == 12
    assert found["spread_of_difference"] > 0
    assert 0 <= found["common"] <= min(found["shortlisted"])


@pytest.mark.slow
def test_two_processes_find_the_same(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("embaudit.measures.sticky.steps.reference.SCORED_TOKENS_PER_SHARD", 5)
    one = run(bench, ["sticky"])["sticky"].figures
    assert len(list(Path(bench.staging).glob("sticky/*/reference-*.parquet"))) == 4
    two = run(replace(bench, out=tmp_path / "two", processes=2), ["sticky"])["sticky"].figures
    assert two == one


def test_a_trial_is_never_committed(bench: Bench, tmp_path: Path) -> None:
    results = run(bench, ["layers"])
    with pytest.raises(UsageError, match="The figures of layers are of a run with --limit 12"):
        commit(results, tmp_path / "figures")
    assert not (tmp_path / "figures").exists()
    whole = {"layers": replace(results["layers"], limit=None)}
    commit(whole, tmp_path / "figures")
    assert read("layers", tmp_path / "figures") == whole["layers"]
    # A row a line, so that a change of one figure is a change of one line.
    written = (tmp_path / "figures/layers.json").read_text("utf-8")
    assert sum('"layer": ' in line and line.strip().startswith("{") for line in written.splitlines()) == 4


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"format": 7}', '{"format": 1, "stage": "layers"}'])
def test_a_broken_result_says_what_to_do(content: str, tmp_path: Path) -> None:
    (tmp_path / "layers.json").write_text(content)
    with pytest.raises(UsageError, match="not the result of a stage") as raised:
        read("layers", tmp_path)
    assert "Delete it" in str(raised.value)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--only", "mercury"], "invalid choice: 'mercury'"),
        (["--limit", "0"], "--limit must be at least 1"),
        (["--processes", "0"], "--processes must be at least 1"),
        (["--only", "socm", "--data", "nowhere", "--limit", "3"], "There is no wikipedia/wiki1m_sample.txt in nowhere"),
        (["--device", "tpu"], "no device 'tpu'"),
    ],
)
def test_wrong_options_are_told(
    arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert said in f"{ended.value.code} {capsys.readouterr().err}"
