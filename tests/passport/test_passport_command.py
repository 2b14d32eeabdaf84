"""The two commands, as a user types them, and what verifying an endpoint does not import."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from commands import run_here
from tiny import tiny_bert

import embaudit
from benchmarks.serving.faults import faithful
from benchmarks.serving.server import Served, serving
from embaudit.checkpoint import Checkpoint

ENVIRONMENT = {**os.environ, "HF_HUB_OFFLINE": "1"}
NOT_NEEDED = ("torch", "transformers", "sentence_transformers", "duckdb", "prefect", "pandas", "sklearn")


def typed(folder: Path, *arguments: str) -> tuple[int, str, str]:
    done = run_here(arguments, ENVIRONMENT, folder)
    return done.returncode, done.stdout, done.stderr


def test_a_passport_is_written_and_verified(passed_folder: Path, passed: Checkpoint, tmp_path: Path) -> None:
    code, said, told = typed(tmp_path, "passport", str(passed_folder))
    assert code == 0, told
    assert said.startswith("passport.json: ")
    assert "24 kinds, 32 dimensions, normalised" in said
    with serving(Served(faithful(passed))) as address:
        code, said, told = typed(tmp_path, "verify", "passport.json", "--with", address, "--out", "page.html")
        assert code == 0, said + told
        assert f"Texts are sent to {address}: the" in told
        assert "The same function" in said
        page = (tmp_path / "page.html").read_text(encoding="utf-8")
        assert "The same function" in page
        assert "What the passport says" in page
        code, said, _ = typed(tmp_path, "verify", "passport.json", "--with", address, "--markdown")
        assert code == 0
        assert "## What the passport says" in said
    other = tiny_bert(tmp_path / "other", seed=1)
    code, said, _ = typed(tmp_path, "verify", "passport.json", "--with", str(other), "--json")
    assert code == 1
    found = json.loads(said)
    assert found["verdict"] == "another function"
    assert len(found["differing"]) == 24
    assert "other weights" in found["probable"]
    code, said, _ = typed(tmp_path, "verify", "passport.json", "--with", str(passed_folder), "--with-dtype", "bfloat16")
    assert code == 0
    assert "lower precision" in said


def test_a_checkpoint_is_read_with_the_settings_of_the_passport(passed_folder: Path, tmp_path: Path) -> None:
    made = embaudit.passport(passed_folder, tmp_path / "cls.json", pooling="cls", prompt="query", device="cpu")
    assert made.settings.prompt == "query"
    report = embaudit.verify(tmp_path / "cls.json", passed_folder, device="cpu")
    assert report.line == "The same function."


def test_verifying_an_endpoint_imports_no_torch(passport_file: Path, passed: Checkpoint) -> None:
    script = (
        "import sys; from embaudit.cli.main import run; code = run(); "
        f"print(code, [name for name in {NOT_NEEDED!r} if name in sys.modules])"
    )
    with serving(Served(faithful(passed))) as address:
        arguments = ["verify", str(passport_file), "--with", address, "--json"]
        done = subprocess.run(
            [sys.executable, "-c", script, *arguments], capture_output=True, text=True, env=ENVIRONMENT
        )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "0 []"


def test_nothing_is_sent_to_another_machine_unasked(passport_file: Path) -> None:
    code, _, told = typed(passport_file.parent, "verify", "passport.json", "--with", "http://203.0.113.1:8080")
    assert code == 2
    assert "Nothing was sent" in told
    assert "--yes" in told


def test_what_cannot_be_compared_ends_with_2(passport_file: Path, passed_folder: Path) -> None:
    folder = passport_file.parent
    (folder / "notes.json").write_text("mine")
    cases = {
        ("verify", "passport.json", "--with", "http://127.0.0.1:9"): "Nothing answers at http://127.0.0.1:9",
        ("verify", "none.json", "--with", "http://127.0.0.1:9"): "Cannot read the passport none.json",
        ("verify", "notes.json", "--with", "http://127.0.0.1:9"): "notes.json is no passport",
        ("verify", "passport.json", "--with", "http://", "--yes"): "is no address",
        ("verify", "passport.json", "--with", "no-such-folder"): "no-such-folder",
        (
            "verify",
            "passport.json",
            "--with",
            str(passed_folder),
            "--api",
            "tei",
        ): "is of an endpoint, and there is none",
        ("passport", str(passed_folder), "--out", "notes.json"): "exists, and would be lost",
        ("passport", "no-such-folder"): "no-such-folder",
    }
    for arguments, said in cases.items():
        code, printed, told = typed(folder, *arguments)
        assert (code, printed) == (2, ""), arguments
        assert said in " ".join(told.split()), told
    assert (folder / "notes.json").read_text() == "mine"
