"""JUnit and SARIF of reports and gates, read again by what reads them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from commands import run_here

from embaudit.pages.ci import CheckedRule, junit, sarif

CHECKED = [
    CheckedRule("verdict", "problem", "Do not serve: two layers changed places.", "It was saved wrong."),
    CheckedRule("limits", "look", "The limits disagree.", "Set both."),
    CheckedRule("quality", "not measured", "There are no pairs."),
    CheckedRule("norm", "ok", "All vectors have length 1."),
    CheckedRule("a \x00 query → ünï", "problem", "It is absent <&>."),
]


def test_what_xml_cannot_hold_is_left_out() -> None:
    odd = "a\x07 \ufffe\uffff\ud800 store #1?.parquet"
    (suite,) = ElementTree.fromstring(junit("why", odd, [CheckedRule(odd, "problem", odd, odd)]))
    assert suite.get("name") == "embaudit why a  store #1?.parquet"
    (run,) = json.loads(sarif("why", odd, [CheckedRule(odd, "problem", odd, odd)]))["runs"]
    uri = run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert uri == "a%20%20store%20%231%3F.parquet"


def test_junit_has_a_case_each() -> None:
    suites = ElementTree.fromstring(junit("check", "./model", CHECKED, 2.25))
    (suite,) = suites
    assert {name: suite.get(name) for name in ("name", "tests", "failures", "skipped", "time")} == {
        **{"name": "embaudit check ./model", "tests": "5", "failures": "2", "skipped": "1", "time": "2.2"}
    }
    cases = {case.get("name"): case for case in suite}
    assert list(cases) == ["verdict", "limits", "quality", "norm", "a  query → ünï"]
    failure = cases["verdict"].find("failure")
    assert failure is not None
    assert (failure.get("message"), failure.text) == (CHECKED[0].said, "It was saved wrong.")
    assert cases["quality"].find("skipped") is not None
    assert cases["limits"].findtext("system-out") == "The limits disagree. Set both."
    absent = cases["a  query → ünï"].find("failure")
    assert absent is not None
    assert absent.get("message") == "It is absent <&>."


def test_sarif_has_a_result_for_all_but_what_is_right() -> None:
    log = json.loads(sarif("check", "./model", CHECKED))
    # What a reader of SARIF looks at first.
    assert log.keys() == {"$schema", "version", "runs"}
    assert (log["version"], log["$schema"].endswith("sarif-2.1.0.json")) == ("2.1.0", True)
    (run,) = log["runs"]
    assert run["tool"]["driver"]["name"] == "embaudit check"
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == [
        one.name.replace("\x00", "") for one in CHECKED if one.level != "ok"
    ]
    assert [(result["ruleId"], result["level"]) for result in run["results"]] == [
        ("verdict", "error"),
        ("limits", "warning"),
        ("quality", "note"),
        ("a  query → ünï", "error"),
    ]
    assert run["results"][0]["message"]["text"] == "Do not serve: two layers changed places. It was saved wrong."
    (place,) = run["results"][0]["locations"]
    assert place["physicalLocation"]["artifactLocation"]["uri"] == "./model"


@pytest.mark.parametrize("bad", [False, True])
def test_a_question_writes_both_files(bad: bool, tmp_path: Path) -> None:
    vectors = np.random.default_rng(0).normal(size=(50, 8)).astype(np.float32)
    vectors[:5] *= 0 if bad else 1
    np.save(tmp_path / "v.npy", vectors)
    done = run_here(("vectors", "v.npy", "--junit", "out.xml", "--sarif", "out.sarif"), dict(os.environ), tmp_path)
    assert done.returncode == int(bad), done.stderr
    (suite,) = ElementTree.parse(tmp_path / "out.xml").getroot()
    failed = [case.get("name") for case in suite if case.find("failure") is not None]
    assert failed == (["verdict", "zeros"] if bad else [])
    results = json.loads((tmp_path / "out.sarif").read_text())["runs"][0]["results"]
    assert [result["ruleId"] for result in results if result["level"] == "error"] == failed
