"""A whole audit where every name is hostile: it runs to published rows, and the names come back as they were."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest
from commands import Embaudit
from hostile import NAMES

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
