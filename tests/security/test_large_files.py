"""Files of a stranger that are larger than they need be, or nested without end: named, and read no further."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest
from commands import Embaudit, run_here
from hostile import NAMES
from hostile_sql import CHANGING, REACHING, SETTING
from plausible import plausible_rows, stage_all
from some_rows import mostly_slow

from embaudit.checkpoint.card import front_matter
from embaudit.checkpoint.files import read_object
from embaudit.checkpoint.tensors import stored_tensors
from embaudit.corpora.scores import read_scores
from embaudit.questions.passport.passport import read_passport
from embaudit.questions.vectors.builder import read_fingerprints
from embaudit.remedies.screening import read_token_list
from embaudit.system.small_files import CARD_BYTES, MOST_BYTES
from embaudit.warehouse.gate.policy import load_policy
from embaudit.watch.watch_list import read_watch_list
from embaudit.words.errors import EmbauditError

READERS: dict[str, Callable[[Path], object]] = {
    "settings of a checkpoint": read_object,
    "a passport": read_passport,
    "a fingerprint": read_fingerprints,
    "a watch list": read_watch_list,
    "a policy": load_policy,
    "a list of tokens": read_token_list,
    "scores": lambda path: list(read_scores([path])),
}
DEEP = 100_000


@pytest.mark.parametrize("read", mostly_slow(list(READERS.values()), 2), ids=list(READERS))
def test_a_file_larger_than_any_such_file_is_named(read: Callable[[Path], object], tmp_path: Path) -> None:
    path = tmp_path / "large.json"
    with path.open("wb") as file:
        # A terabyte that takes no room.
        file.truncate(1 << 40)
    with pytest.raises(EmbauditError, match=rf"{path}.*more than {MOST_BYTES >> 20} MiB"):
        read(path)


@pytest.mark.parametrize("read", list(READERS.values()), ids=list(READERS))
def test_lists_in_lists_are_named(read: Callable[[Path], object], tmp_path: Path) -> None:
    path = tmp_path / "deep.json"
    path.write_text("[" * DEEP + "]" * DEEP, encoding="utf-8")
    with pytest.raises(EmbauditError, match=str(path)):
        read(path)


def test_a_list_of_lists_in_toml_is_named(tmp_path: Path) -> None:
    path = tmp_path / "deep.toml"
    path.write_text(f"a = {'[' * DEEP}{']' * DEEP}", encoding="utf-8")
    with pytest.raises(EmbauditError, match=f"{path} .*nested too deep"):
        load_policy(path)


@pytest.mark.parametrize("length", [1 << 62, sys.maxsize, 1 << 36, 100])
def test_a_header_of_weights_that_cannot_be_is_named(length: int, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(length.to_bytes(8, "little") + b"[" * DEEP)
    with pytest.raises(EmbauditError, match=f"{path} cannot be read as safetensors"):
        stored_tensors([path])


def test_of_a_card_without_end_the_beginning_is_read(tmp_path: Path) -> None:
    path = tmp_path / "README.md"
    path.write_text("---\nbase_model: owner/name\n---\n", encoding="utf-8")
    with path.open("r+b") as file:
        file.truncate(1 << 40)
    assert front_matter(path).get("base_model") == "owner/name"
    assert CARD_BYTES < 1 << 40


# ---- SQL from users through ``embaudit query``: it reads the warehouse, and reaches and changes nothing else ----


SECRET = "canary-secret"


@pytest.fixture(scope="module")
def filled(published_once: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sql")
    stage_all(folder / "staged", {"token": plausible_rows()["token"]})
    (folder / "warehouse").mkdir()
    return Path(shutil.copy(published_once, folder / "warehouse"))


@pytest.fixture
def ask(filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[object, str]]:
    """Run a command on the warehouse; its exit code and everything it printed. Nothing may change on the disk."""
    secret = tmp_path / "secret.csv"
    secret.write_text(f"a,b\n1,{SECRET}\n")
    monkeypatch.setenv("CANARY", SECRET)

    def state() -> tuple[list[Path], str]:
        files = sorted([*tmp_path.rglob("*"), *filled.parent.rglob("*")])
        return files, hashlib.sha256(filled.read_bytes()).hexdigest()

    before = state()

    def run(command: str, *more: str) -> tuple[object, str]:
        done = run_here((command, "--warehouse", str(filled), *more), os.environ, tmp_path)
        assert state() == before, f"{command} {more} changed something on the disk"
        assert SECRET not in done.stdout + done.stderr
        return done.returncode, done.stdout + done.stderr

    return run


@pytest.mark.parametrize(
    "statements", mostly_slow([REACHING, CHANGING, SETTING], 1), ids=["reaching", "changing", "setting"]
)
def test_one_paragraph_and_nothing_reached_or_changed(
    ask: Callable[..., tuple[object, str]], statements: list[str], filled: Path, tmp_path: Path
) -> None:
    staged = next((filled.parents[1] / "staged").rglob("*.parquet"))
    for statement in statements:
        sql = statement.format(secret=tmp_path / "secret.csv", folder=tmp_path, parquet=staged)
        code, printed = ask("query", sql)
        assert code == 2, (sql, printed)
        assert printed.startswith("Error: "), (sql, printed)
        assert "Traceback" not in printed, sql


def test_an_honest_question_still_has_its_answer(ask: Callable[..., tuple[object, str]]) -> None:
    code, printed = ask("query", "SELECT audit_id, status FROM audit", "--format", "csv")
    assert (code, printed) == (0, "audit_id,status\na1,published\n")


@pytest.mark.slow
def test_the_name_of_an_audit_is_a_value_and_no_sql(ask: Callable[..., tuple[object, str]]) -> None:
    for name in (*NAMES.values(), "' OR 1=1 --", "a1' OR '1'='1", "%", "_1"):
        code, printed = ask("show", "--", name)
        assert code == 2, name
        assert "has no audit" in printed, name
        assert "\x1b" not in printed, name


# ---- A whole audit where every name is hostile: it runs to published rows, and the names come back as they were ----


# Of one folder or file each; together all of them.
FIRST, SECOND, THIRD = (
    "".join(text.replace("?", "") for text in list(NAMES.values())[start : start + 6]) for start in (0, 6, 12)
)


@pytest.mark.slow
def test_an_audit_with_hostile_names_publishes_them_as_text(
    embaudit: Embaudit, tiny_checkpoint: Path, tiny_profile: Path, tmp_path: Path, prefect_api: str
) -> None:
    checkpoint = tmp_path / f"checkpoint{FIRST}"
    checkpoint.symlink_to(tiny_checkpoint)
    corpus = tmp_path / f"corpus{SECOND}.txt"
    corpus.write_text("".join(f"{name.splitlines()[0]} is a name, and the river runs\n" for name in NAMES.values()))
    profile = tmp_path / f"profile{THIRD}.toml"
    profile.write_text(tiny_profile.read_text().replace('name = "tiny"', f"name = {json.dumps(THIRD)}"))
    home = tmp_path / f"home{FIRST.replace(chr(92), '')}"
    warehouse = tmp_path / f"warehouse{SECOND}" / f"{THIRD}.duckdb"
    before = {path.name for path in tmp_path.iterdir()}
    arguments = (
        *("audit", str(checkpoint), "--profile", str(profile), "--measures", "socm", "--warehouse", str(warehouse)),
        *("--corpus", f"wikipedia={corpus}", "--corpus", f"msmarco={corpus}"),
    )
    result = embaudit(*arguments, EMBAUDIT_HOME=str(home))
    assert result.returncode == 0, result.stderr
    for escape in ("\x1b[31m", "\x1b]0", "\u202e"):
        assert escape not in result.stdout + result.stderr
    # Nothing but the two folders that were named has come into being.
    assert {path.name for path in tmp_path.iterdir()} - before == {home.name, warehouse.parent.name}
    with duckdb.connect(str(warehouse), read_only=True) as connection:
        assert connection.execute("SELECT source FROM checkpoint").fetchall() == [(str(tiny_checkpoint.resolve()),)]
        assert set(connection.execute("SELECT source FROM corpus").fetchall()) == {(str(corpus),)}
        assert connection.execute("SELECT profile, status FROM audit").fetchall() == [(THIRD, "published")]
        texts = {row[0] for row in connection.execute("SELECT text FROM text").fetchall()}
        assert connection.execute("SELECT count(*) > 0 FROM socm_pair").fetchall() == [(True,)]
    assert texts == {line.strip() for line in corpus.read_text().splitlines()}
    shown = embaudit("show", "--warehouse", str(warehouse))
    assert shown.returncode == 0, shown.stderr
    assert "SOCM" in shown.stdout
