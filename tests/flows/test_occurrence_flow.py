"""Occurrence through the audit flow: on what ``sticky`` found; counts against a loop; page, findings, query, screen."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from string import ascii_lowercase

import duckdb
import pytest
from commands import Embaudit
from planned import assert_planned
from small_audits import PROFILE, AuditOnce, answered, shown
from tiny import ENGLISH

from embaudit.checkpoint.weightless import load_tokenizer_alone
from embaudit.questions.audit import AuditRequest
from embaudit.words.errors import UsageError
from embaudit_flows.audit import AuditOutcome
from embaudit_flows.plan import plan_audit

pytestmark = pytest.mark.slow

SETTINGS = """
[occurrence]
corpora = ["wikipedia"]
severity = "weak"
removal_texts = 5
anchors = 20
"""


@pytest.fixture(scope="module")
def texts() -> list[str]:
    words = ENGLISH.split()
    return [" ".join(words[(7 * place + step * step) % len(words)] for step in range(9)) for place in range(80)]


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("profile") / "occurrence.toml"
    path.write_text(PROFILE + SETTINGS)
    return path


@pytest.fixture(scope="module")
def outcome(
    audit_once: AuditOnce, profile: Path, texts: list[str], tmp_path_factory: pytest.TempPathFactory
) -> AuditOutcome:
    """An audit of sticky tokens and of where they occur, to be read only."""
    folder = tmp_path_factory.mktemp("occurrence")
    (folder / "texts.txt").write_text("\n".join(texts))
    corpora = {"wikipedia": str(folder / "texts.txt")}
    return audit_once(profile=str(profile), measures=["sticky", "occurrence"], corpora=corpora)


def test_every_severe_token_is_counted_as_a_loop_counts_it(outcome: AuditOutcome, tiny_checkpoint: Path) -> None:
    with duckdb.connect(outcome.warehouse, read_only=True) as connection:
        rows = connection.execute("FROM occurrence ORDER BY token_id").df().to_dict("records")
        (corpus,) = connection.execute("FROM occurrence_corpus").df().to_dict("records")
        listed = connection.execute(
            "SELECT token_id FROM sticky_token JOIN token USING (checkpoint_id, token_id) "
            "WHERE severity <> 'negligible' AND is_reachable ORDER BY token_id"
        ).fetchall()
        read = [text for (text,) in connection.execute("SELECT text FROM text ORDER BY position").fetchall()]
    tokenizer = load_tokenizer_alone(str(tiny_checkpoint)).tokenizer
    ids = [tokenizer.encode(text, add_special_tokens=False) for text in read]
    slow = Counter(token_id for one in ids for token_id in one)
    assert rows
    assert [row["token_id"] for row in rows] == [token_id for (token_id,) in listed]
    assert {row["token_id"]: row["occurrences"] for row in rows} == {
        row["token_id"]: slow[row["token_id"]] for row in rows
    }
    for row in rows:
        holding = sum(row["token_id"] in one for one in ids)
        assert row["texts"] == holding
        assert row["removal_texts"] <= min(holding, 5)
    known = {row["token_id"] for row in rows}
    assert corpus["tokens"] == sum(map(len, ids))
    assert corpus["severe"] == sum(slow[token_id] for token_id in known)
    assert corpus["severe_texts"] == sum(bool(known & {*one}) for one in ids)
    assert (corpus["listed"], corpus["met"]) == (len(rows), sum(row["occurrences"] > 0 for row in rows))
    if corpus["severe_texts"]:
        assert corpus["removal_texts"] > 0
        assert corpus["moved"] > 0
    assert_planned(outcome)


def test_the_page_the_findings_and_the_query(embaudit_here: Embaudit, outcome: AuditOutcome) -> None:
    assert {row["name"] for row in outcome.findings if row["measure"] == "occurrence"} >= {"severe_texts"}
    assert "Severe tokens in real texts" in shown(embaudit_here, outcome)
    found = answered(embaudit_here, outcome, "occurrence")
    assert found
    assert {row["corpus"] for row in found} == {"wikipedia"}
    assert [row["occurrences"] for row in found] == sorted((row["occurrences"] for row in found), reverse=True)


def test_the_audit_is_what_a_file_is_screened_with(
    embaudit_here: Embaudit, outcome: AuditOutcome, tiny_checkpoint: Path, texts: list[str], tmp_path: Path
) -> None:
    listed = embaudit_here("filter", str(tiny_checkpoint), "--severity", "weak", "--warehouse", outcome.warehouse)
    severe = {one["token_id"]: one["text"] for one in json.loads(listed.stdout)["tokens"] if one["is_reachable"]}
    tokenizer = load_tokenizer_alone(str(tiny_checkpoint)).tokenizer
    # A piece of a word stands behind some letter.
    words = [
        word
        for text in severe.values()
        for word in (letter + text.removeprefix("##") for letter in ("", *ascii_lowercase))
        if severe.keys() & {*tokenizer.encode(word, add_special_tokens=False)}
    ]
    assert words
    clean = tmp_path / "clean.txt"
    clean.write_text("\n".join(text for text in texts if not {*text.split()} & {*words}) + "\nof the\n" * 2_000)
    dump = tmp_path / "dump.txt"
    dump.write_text("\n".join(["of the and"] * 50 + [" ".join(words[:1] * 10)]))
    given = ("--ordinary", str(clean), "--severity", "weak", "--score", "0", "--warehouse", outcome.warehouse)
    done = embaudit_here("screen", str(dump), "--json", *given)
    found = json.loads(done.stdout)
    assert found["audit_id"] == outcome.audit_id
    assert done.returncode == int(found["flagged"] > 0)
    assert found["files"][0]["texts"] == 51


def test_occurrence_alone_says_what_to_add(tiny_checkpoint: Path, profile: Path, home: Path) -> None:
    request = AuditRequest(checkpoint=str(tiny_checkpoint), profile=str(profile), measures=["occurrence"], device="cpu")
    with pytest.raises(UsageError, match="builds on sticky") as error:
        plan_audit(request)
    assert "--measures sticky,occurrence" in error.value.next_step
