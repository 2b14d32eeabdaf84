"""Endpoints on a watch list: asked every time, recorded, and said where they serve something else."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import run_here
from index_library import Library, named, texts_of, told

from benchmarks.serving.faults import faithful
from benchmarks.serving.server import Served, serving
from embaudit.checkpoint import LoadOptions, load_checkpoint
from embaudit.questions.report import WrongRow
from embaudit.warehouse.query import run_query
from embaudit.watch.happening import NightProblem
from embaudit_flows.watch import watch


def red_of(state: Any) -> NightProblem:
    """What a run ended with."""
    found = state.result(raise_on_failure=False)
    assert isinstance(found, NightProblem), found
    return found


@pytest.mark.slow
def test_a_hosted_model_is_held_against_its_own_first_passport(
    tmp_path: Path, home: Path, put: Callable[[Path, int], Path]
) -> None:
    served = Served(faithful(load_checkpoint(str(put(tmp_path / "model", 0)), LoadOptions(device="cpu"))))
    watch_list = tmp_path / "watch.toml"
    with serving(served) as address:
        watch_list.write_text(f'[[endpoint]]\naddress = "{address}"\n')
        first = watch(str(watch_list))
        assert first.summary == "1 question answered well"
        assert watch(str(watch_list)).summary == "1 question answered well"
        # Another model behind the same name: it is red that night, and every night after it.
        served.encode = faithful(load_checkpoint(str(put(tmp_path / "other", 1)), LoadOptions(device="cpu")))
        for _ in range(2):
            state = watch(str(watch_list), return_state=True)
            assert (state.name, state.type.value) == ("Not served as audited", "FAILED")
            assert red_of(state).outcome.summary == f"1 problem: Not served as audited: {address}"
        (passport,) = (home / "reports" / "endpoints").iterdir()
        passport.unlink()
        assert watch(str(watch_list)).summary == "1 question answered well"
    verdicts = run_query(home / "warehouse.duckdb", "SELECT verdict FROM endpoint_history ORDER BY asked").rows
    assert [verdict for (verdict,) in verdicts] == [*("the same function", "another function", "another function")]


def test_what_is_served_is_asked_every_time(
    tmp_path: Path, home: Path, put: Callable[[Path, int], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = put(tmp_path / "model", 0)
    checkpoint = load_checkpoint(str(folder), LoadOptions(device="cpu"))
    served = Served(faithful(checkpoint))
    watch_list = tmp_path / "watch.toml"
    with serving(served) as address:
        entry = f'[[endpoint]]\naddress = "{address}"\ncheckpoint = "model"\n'
        watch_list.write_text('[settings]\ndevice = "cpu"\n' + entry)
        right = watch(str(watch_list))
        assert right.summary == "1 question answered well"
        assert [one.verdict for one in right.answers] == ["the same function"]
        # The same server, wrongly configured overnight.
        served.encode = faithful(replace(checkpoint, recipe=replace(checkpoint.recipe, pooling=("cls",))))
        night = red_of(watch(str(watch_list), return_state=True))
        wrong = night.outcome
        assert (night.state, night.exit_code) == ("Not served as audited", 1)
        assert wrong.summary == f"1 problem: Not served as audited: {address}"
        assert "takes cls instead of mean pooling" in wrong.answers[0].line
        # Somebody accepts it, and it stays accepted as long as it is the same; nothing else is.
        assert [(row[2], row[4]) for row in run_query(home / "warehouse.duckdb", "open-items").rows] == [
            ("answer", "parity: another function")
        ]
        accepted = run_here(
            ("accept", address, "--reason", "known", "--by", "me"), {**os.environ, "EMBAUDIT_HOME": str(home)}, tmp_path
        )
        assert "parity: another function" in accepted.stdout, accepted.stderr
        assert watch(str(watch_list)).summary == "1 question answered as accepted"
        served.encode = faithful(replace(checkpoint, recipe=replace(checkpoint.recipe, pooling=("max",))))
        assert red_of(watch(str(watch_list), return_state=True)).state == "Not served as audited"
    silent = red_of(watch(str(watch_list), return_state=True))
    gone = silent.outcome
    assert (silent.state, silent.exit_code) == ("Endpoint silent", 2)
    assert gone.summary == f"1 problem: Endpoint silent: {address}"
    assert "Nothing answers at" in gone.answers[0].line
    history = run_query(
        home / "warehouse.duckdb", "SELECT endpoint, verdict, line FROM endpoint_history ORDER BY asked"
    )
    assert [row[:2] for row in history.rows] == [
        (address, verdict) for verdict in ("the same function", *["another function"] * 3)
    ]
    assert "takes cls" in history.rows[1][2]
    seen = run_here(("watch", str(watch_list), "--dry-run"), os.environ, tmp_path)
    assert "ask parity" in seen.stdout
    assert str(folder) in seen.stdout


# ---- indexes on a watch list: what came into one since the night before, whose rows these are, and what is open ----


def test_five_nights(library: Library) -> None:
    library.write(named(0, 40))
    first = library.night()
    assert (first.verdict, first["rows"], first["added"], first.problems) == ("wholly its own", 40, 0, [])
    assert first.line == "First look: 40 rows. All 40 rows are the checkpoint's."

    library.write(named(40, 50))
    second = library.night()
    assert (second.verdict, second["added"], second["new_foreign"]) == ("wholly its own", 10, 0)
    assert (second["rows"], second["new_share"], second["foreign"]) == (50, 0, 0)
    assert second.line.endswith("10 added. All 10 new rows are the checkpoint's. All 40 old rows are the checkpoint's.")

    library.write(named(50, 58), revision=1)
    library.write(named(58, 60))
    third = library.night()
    assert third.verdict == "not wholly its own"
    assert (third["added"], third["new_foreign"], third["new_share"], third["foreign"]) == (10, 8, 0.8, 0)
    assert third.ids == named(50, 58)
    assert "8 of the 10 rows added or overwritten are not the checkpoint's (80.0%): doc-50, doc-51" in third.line
    assert "and 3 more" in third.line

    fourth = library.night()
    assert (fourth.verdict, fourth["added"]) == ("not wholly its own", 0)
    assert fourth.ids == named(50, 58)
    assert third.report.since is not None
    day = f"{third.report.since.now:%Y-%m-%d}"
    assert {row["since"] for row in fourth.report.rows()[WrongRow]} == {third.report.since.now}
    assert "No row is new since" in fourth.line
    assert f"Open since {day}: 8 of the 10 rows of {day} are not the" in fourth.line

    library.write(named(50, 58))
    fifth = library.night()
    assert (fifth.verdict, fifth["added"], fifth["overwritten"], fifth["new_foreign"]) == ("wholly its own", 0, 8, 0)
    assert (fifth.problems, fifth.ids) == ([], [])


@pytest.mark.slow
def test_a_half_mended_night_stays_red(library: Library) -> None:
    library.more = "rows = 20"
    library.write(named(0, 60))
    library.night()
    library.write(named(60, 100), revision=1)
    red = library.night()
    assert (red["added"], red["new_foreign"]) == (40, 20)
    assert "100.0% [" in red.line
    assert "of the 40 rows added or overwritten are not the checkpoint's, 20 of 20 that were encoded again" in red.line
    # Whoever mends only what was named has mended a part.
    library.write(red.ids)
    half = library.night()
    assert half.verdict == "not wholly its own"
    assert set(half.ids) == set(named(60, 100)) - set(red.ids)
    library.remove(named(60, 100))
    done = library.night()
    assert (done.verdict, done["removed"], done.ids) == ("wholly its own", 40, [])


@pytest.mark.slow
@pytest.mark.parametrize("has_ids", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_rows_are_known_again(library: Library, has_ids: bool) -> None:
    library.has_ids = has_ids
    library.write(named(0, 30))
    library.night()
    library.remove(named(0, 4))
    library.write(named(30, 33))
    if has_ids:
        library.write(["doc-9"], vectors=library.encode[1](texts_of(["doc-9"])))
    else:
        library.remove(["doc-9"])
        library.write(["doc-9"], revision=1)
    found = library.night()
    # Without ids, a row that is overwritten is one that is gone and another one.
    counts = (3, 1, 4) if has_ids else (4, 0, 5)
    assert (found["added"], found["overwritten"], found["removed"]) == counts
    assert ("4 removed (doc-0, doc-1, doc-2, doc-3)" in found.line) == has_ids, "which rows are gone is said"
    assert (found["new_foreign"], found["new_share"], found["foreign"]) == (1, 0.25, 0)
    assert found.ids == (["doc-9"] if has_ids else ["row 29"])
    assert library.night().verdict == "not wholly its own"


@pytest.mark.slow
def test_a_text_that_was_edited_and_not_encoded_again_is_found(library: Library) -> None:
    library.write(named(0, 20))
    library.night()
    with closing(sqlite3.connect(library.path)) as connection, connection:
        connection.execute("UPDATE docs SET text = 'a law of the bank and the court' WHERE id = 'doc-3'")
    found = library.night()
    assert (found["overwritten"], found["new_foreign"], found.ids) == (1, 1, ["doc-3"])


@pytest.mark.slow
def test_nights_of_a_chroma_folder(library: Library) -> None:
    chromadb = pytest.importorskip("chromadb", reason="needs chromadb: pip install 'embaudit[chroma]'")
    library.store = "chroma"
    library.more = 'from = "docs"'

    def write(names: Sequence[str], revision: int = 0) -> None:
        settings = chromadb.Settings(anonymized_telemetry=False)
        client = chromadb.PersistentClient(path=str(library.folder / "chroma"), settings=settings)
        # One at a time: in another batch, the last bits of a vector may be others.
        vectors = np.concatenate([library.encode[revision]([text]) for text in texts_of(names)])
        collection = client.get_or_create_collection("docs", embedding_function=None)
        collection.upsert(ids=list(names), embeddings=vectors, documents=texts_of(names))
        client.close()

    write(named(0, 40))
    assert library.night().verdict == "wholly its own"
    write(named(35, 45))
    second = library.night()
    # What is written again as it was is not new.
    assert (second["added"], second["overwritten"], second.verdict) == (5, 0, "wholly its own")
    write(named(43, 48), revision=1)
    third = library.night()
    assert (third["added"], third["overwritten"], third.ids) == (3, 2, named(43, 48))
    write(named(43, 48))
    assert library.night().verdict == "wholly its own"


def test_what_is_wrong_with_new_vectors_alone(library: Library) -> None:
    library.write(named(0, 30))
    library.night()
    own = library.encode[0](texts_of(named(30, 34))).astype(np.float32)
    own[0], own[1, 3] = 0, np.nan
    library.write(named(30, 34), vectors=own)
    with closing(sqlite3.connect(library.path)) as connection, connection:
        connection.execute("INSERT INTO docs SELECT 'twice', text, vector FROM docs WHERE id = 'doc-2'")
        connection.execute("INSERT INTO docs VALUES ('none', 'a text', NULL)")
        connection.execute("INSERT INTO docs VALUES ('short', 'a text', ?)", (np.ones(16, np.float32).tobytes(),))
    found = library.night()
    for what in ("zeros", "not_finite", "without_vector", "copies", "other_dimensions"):
        assert found[f"new_{what}"] == 1, what
    assert (found["new_foreign"], found.verdict) == (0, "not wholly its own")
    for sentence in (
        "1 of the 7 rows added or overwritten holds zeros only: doc-30.",
        "1 of the 7 rows added or overwritten holds NaN or infinity: doc-31.",
        "1 of the 7 rows added or overwritten has no vector: none.",
        "1 of the 7 rows added or overwritten has another number of dimensions: short.",
    ):
        assert sentence in found.line
    again = library.night()
    assert set(again.problems) == set(found.problems)
    library.write(named(30, 34))
    library.remove(["short"])
    with closing(sqlite3.connect(library.path)) as connection, connection:
        connection.execute("DELETE FROM docs WHERE id IN ('none', 'short')")
    assert library.night().verdict == "wholly its own"


@pytest.mark.slow
def test_an_encoder_that_gave_one_vector_to_all_texts(library: Library) -> None:
    library.write(named(0, 30))
    library.night()
    library.write(named(30, 42), vectors=library.encode[0](["the same text"]).repeat(12, axis=0))
    found = library.night()
    assert (found["new_foreign"], set(found.problems)) == (12, {"other_vectors", "equal_vectors"})
    assert "12 different texts of the 12 rows added or overwritten have one and the same vector." in found.line
    assert found.report.since is not None
    kept = found.report.since.path.read_bytes().decode(errors="replace")
    assert "old river" not in kept + "".join(one.sentence for one in found.report.findings if one.level == "problem")


@pytest.mark.slow
def test_what_was_accepted_stays_so_and_what_comes_later_is_red(library: Library) -> None:
    library.write(named(0, 30))
    library.write(named(30, 33), revision=1)
    first = library.night()
    assert (first.verdict, round(33 * first["foreign"]), first.ids) == ("not wholly its own", 3, named(30, 33))
    library.accept(first)
    assert library.night().verdict == "wholly its own"
    library.write(named(33, 36), revision=1)
    red = library.night()
    assert red.ids == named(33, 36)
    library.accept(red)
    for _ in range(2):
        green = library.night()
        assert (green.verdict, green.problems) == ("wholly its own", [])
    # Rows that were accepted, and are written again wrongly, are new ones.
    library.write(named(34, 36), vectors=-library.encode[1](texts_of(named(34, 36))))
    assert library.night().ids == named(34, 36)


def test_what_was_embedded_may_be_a_template(library: Library) -> None:
    library.more = "text = '{id}: {text}'"
    library.write(named(0, 20), vectors=library.encode[0]([f"{name}: {text}" for name, text in told(named(0, 20))]))
    assert library.night().verdict == "wholly its own"
    library.write(named(20, 23), vectors=library.encode[0]([f"{name}: {text}" for name, text in told(named(20, 23))]))
    found = library.night()
    assert (found["added"], found["new_foreign"], found["new_share"]) == (3, 0, 0)
