"""``embaudit watch`` as a person types it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from commands import Embaudit
from test_watch_flow import SETTINGS, Put, Watcher, watcher  # noqa: F401  (a fixture)

from embaudit.cli.main import cli
from embaudit.words.errors import UsageError


def invoke(*arguments: str) -> str:
    done = CliRunner().invoke(cli, ["watch", *arguments], catch_exceptions=False, standalone_mode=False)
    return done.output


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without a warehouse; a dry run needs no server."""
    monkeypatch.setenv("EMBAUDIT_HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    (tmp_path / "profile.toml").write_text('name = "watched"\nversion = 1\ndescription = ""\n')
    return tmp_path


def test_a_dry_run_says_what_is_new_and_writes_nothing(alone: Path, put: Put) -> None:
    put(alone / "runs" / "one", 0)
    put(alone / "runs" / "half", 1)
    (alone / "runs" / "half" / "model.safetensors").unlink()
    (alone / "home" / "watch.toml").write_text(
        f'{SETTINGS.replace("profile.toml", "../profile.toml")}[[folder]]\npath = "../runs"\neach = true\n'
    )
    found = {Path(row["source"]).name: row for row in json.loads(invoke("--dry-run", "--json"))}
    assert (found["one"]["would"], found["one"]["is_new"]) == ("audit it", True)
    assert found["half"]["would"] == "record it and try again next time"
    assert "has no weights" in found["half"]["reason"]
    table = invoke(str(alone / "home" / "watch.toml"), "--dry-run", "--once")
    assert "audit it" in table
    assert "has no weights" in table
    assert [path.name for path in (alone / "home").iterdir()] == ["watch.toml"]


def test_a_list_that_does_not_fit_is_said_before_a_server_starts(alone: Path) -> None:
    (alone / "watch.toml").write_text('[[hub]]\nname = "owner/name"\nrevison = "dev"')
    with pytest.raises(UsageError, match="did you mean revision"):
        invoke(str(alone / "watch.toml"))
    with pytest.raises(UsageError, match="There is no watch list"):
        invoke()


@pytest.mark.slow
def test_a_watch_prints_what_became_of_every_source(watcher: Watcher, put: Put, embaudit_here: Embaudit) -> None:  # noqa: F811
    put(watcher.folder / "model", 0)
    put(watcher.folder / "refused", 1)
    watcher.write('[[folder]]\npath = "model"\n[[folder]]\npath = "refused"\nsettings = { pooling = "nonsense" }')
    done = embaudit_here("watch", str(watcher.list))
    assert done.returncode == 2, done.stderr
    assert "; 1 audited, 1 failed." in done.stdout
    assert "Checkpoint not read: " in done.stderr
    assert "nonsense" in done.stdout
    put(watcher.folder / "model", 1)
    watcher.write(
        '[[folder]]\npath = "model"\n[[folder]]\npath = "refused"\nsettings = { corpora = { wikipedia = "x.txt" } }'
    )
    failed = embaudit_here("watch", str(watcher.list), "--json")
    assert failed.returncode == 2
    assert "Audit failed: " in failed.stderr
    assert "Traceback" not in failed.stderr
    outcome = json.loads(failed.stdout)
    assert [row["outcome"] for row in outcome["rows"]] == ["audited", "failed"]
    assert outcome["rows"][0]["predecessor_audit_id"]
    shown = embaudit_here("query", "regressions", "--format", "json")
    worse = [f"{row['measure']} of {row['item']}" for row in json.loads(shown.stdout)]
    assert worse == [text.rsplit(" ", 1)[0] for text in outcome["rows"][0]["worse"]]
    assert "Everything else is done" in failed.stderr
