"""Findings: the limits of each rule, what is said where evidence is thin, and where findings are shown."""

from __future__ import annotations

from math import isnan
from typing import Any

import pytest
from plausible import plausible_rows
from plausible_records import staged_findings
from told_before import unread

from embaudit.declared.rule import MAX_FINDINGS, Finding, Rule
from embaudit.measures import MEASURES
from embaudit.measures.geometry.work import DOMINATING, ISOTROPY, MATTERS
from embaudit.measures.impact.findings import LOSS
from embaudit.measures.layers.findings import TOKENS_ALIKE
from embaudit.measures.length.findings import LONG_PAIRS, MIN_PAIRS, RANKING, RISE
from embaudit.measures.listed import find_all, load_profile
from embaudit.measures.occurrence.work import REMOVAL, SEVERE_TEXTS
from embaudit.measures.socm.findings import CUT_TEXTS, THROWN_AWAY
from embaudit.measures.sticky.findings import ONE_COPY, SEARCH, WORST_TOKEN
from embaudit.pages.text import print_page
from embaudit.pages.write import audit_page

QUICK = load_profile("quick")
SCREEN = 45


def found(measure: str, **changes: dict[str, Any] | None) -> dict[str, Finding]:
    """A measure's findings by name, on plausible rows with columns of some tables changed; None empties a table."""
    tables = plausible_rows()

    def rows(table: str) -> list[dict[str, Any]]:
        if table in changes and changes[table] is None:
            return []
        return [{**row, **(changes.get(table) or {})} for row in tables[table]]

    made = list(MEASURES[measure].parts().findings(rows, getattr(QUICK, measure)))
    assert len(made) <= MAX_FINDINGS
    assert len({one.name for one in made}) == len(made)
    assert not unread(measure, made)
    return {one.name: one for one in made}


NO_PILOT = {"pilot_shortlisted": 0, "pilot_missed": 0, "miss_rate": None, "miss_low": None, "miss_high": None}
TEMPERATURES = ("tempscale", "tempscale_choice", "tempscale_search")


@pytest.mark.parametrize(
    ("measure", "rule", "table", "column"),
    [
        ("sticky", WORST_TOKEN, "sticky_validation", "loss"),
        ("sticky", ONE_COPY, "sticky_dose", "loss"),
        ("socm", THROWN_AWAY, "socm_summary", "socm_mean"),
        ("layers", TOKENS_ALIKE, "pooled_stat", "within_text_cosine"),
        ("geometry", ISOTROPY, "geometry", "mean_cosine"),
        ("length", RISE, "length_rise", "rise"),
        ("occurrence", SEVERE_TEXTS, "occurrence_corpus", "severe_share"),
    ],
)
def test_levels_change_at_the_limits_of_the_rule(measure: str, rule: Rule, table: str, column: str) -> None:
    levels = {-0.1: "ok", 0.0: "ok", 0.9: "ok"}
    if not isnan(rule.look):
        levels = {-0.1: "ok", rule.look - 1e-3: "ok", rule.look: "look", 1.0: "look"}
    made = {value: found(measure, **{table: {column: value}})[rule.name] for value in levels}
    assert {value: one.level for value, one in made.items()} == levels
    # A loss below 0 is noise, and told as none.
    told = {value: max(value, 0.0) if measure == "sticky" else value for value in levels}
    assert {value: one.value for value, one in made.items()} == told


@pytest.mark.parametrize(
    ("beyond", "high", "level"),
    [
        *((-0.04, None, "not measured"), (-0.5, 0.01, "ok"), (LOSS.look + 1e-3, -0.001, "ok")),
        *((LOSS.look, -0.001, "look"), (LOSS.problem, -0.001, "problem")),
    ],
)
def test_a_task_that_tokens_hurt(beyond: float, high: float | None, level: str) -> None:
    low = None if high is None else -0.6
    one = found("impact", impact={"beyond": beyond, "beyond_low": low, "beyond_high": high})["loss_ndcg_10"]
    assert (one.level, one.value) == (level, beyond)
    assert one.sentence.startswith("With '龸' in all documents, nDCG@10 on retrieval is 0.727 instead of 0.750: ")
    # The clean arm and ordinary tokens are compared with nothing.
    assert not found("impact", impact={"beyond": None})


@pytest.mark.parametrize(
    ("truncated", "level"),
    [
        *((0, "ok"), (round(100 * CUT_TEXTS.look) - 1, "ok"), (round(100 * CUT_TEXTS.look), "look")),
        *((round(100 * CUT_TEXTS.problem) - 1, "look"), (round(100 * CUT_TEXTS.problem), "problem")),
    ],
)
def test_texts_that_are_cut(truncated: int, level: str) -> None:
    one = found("socm", socm_summary={"texts": 96, "undefined": 4, "truncated": truncated})["cut_texts"]
    assert one.level == level
    assert one.sentence.startswith(f"{truncated} of 100 texts" if truncated else "No text in wikipedia")


@pytest.mark.parametrize(
    ("pairs", "share", "level"),
    [
        *((MIN_PAIRS - 1, 0.9, "not measured"), (MIN_PAIRS, LONG_PAIRS.look - 0.01, "ok")),
        *((MIN_PAIRS, LONG_PAIRS.look, "look"), (MIN_PAIRS, LONG_PAIRS.problem, "problem")),
    ],
)
def test_long_pairs_need_to_be_many(pairs: int, share: float, level: str) -> None:
    changed = {"long_pairs": pairs, "share_long_above": share}
    assert found("length", length_summary=changed)["long_pairs"].level == level


@pytest.mark.parametrize(
    ("difference", "low", "high", "level", "favoured"),
    [
        *((0.1, 0.05, 0.15, "look", "Short"), (-0.1, -0.15, -0.05, "look", "Long")),
        *((RANKING.look, 0.001, 0.04, "look", "Short"), (RANKING.look - 1e-3, 0.001, 0.04, "ok", None)),
        (0.1, -0.01, 0.2, "ok", None),
    ],
)
def test_rankings_name_the_length_that_comes_up_too_often(
    difference: float, low: float, high: float, level: str, favoured: str | None
) -> None:
    one = found("length", length_ranking={"difference": difference, "low": low, "high": high})["length_ranking"]
    assert (one.level, one.value, one.low, one.high) == (level, difference, low, high)
    assert f"({difference:+.1%} [{low:+.1%}, {high:+.1%}])" in one.sentence
    assert one.sentence.endswith(f" With all documents cut to 40 tokens the difference is {difference:+.1%}.")
    assert one.meaning.partition(" ")[0] == (favoured or "")


def test_dimensions_dominate_where_there_is_something_to_dominate() -> None:
    most = int(DOMINATING.look)
    cases = {(most, MATTERS): "look", (most + 1, MATTERS): "ok", (1, MATTERS - 0.01): "ok"}
    for (few, cosine), level in cases.items():
        made = found("geometry", geometry={"dimensions_for_half": few, "mean_cosine": cosine})
        assert made["dominating_dimensions"].level == level
    assert "dominating_dimensions" not in found("geometry", geometry={"dimensions_for_half": None})


def test_severe_tokens_in_texts_are_counted() -> None:
    sentence = found("occurrence")["severe_texts"].sentence
    assert "1 of 2 severe tokens occur in wikipedia: 3 of 40 texts contain one" in sentence


@pytest.mark.parametrize(
    ("excess", "low", "level"),
    [
        (0.03, 0.02, "look"),
        (REMOVAL.look - 1e-3, 0.008, "ok"),
        (0.03, -0.01, "ok"),
        (-0.01, -0.02, "ok"),
        (0.03, None, "not measured"),
    ],
)
def test_what_severe_tokens_do_needs_an_interval_above_nothing(excess: float, low: float | None, level: str) -> None:
    high = None if low is None else 0.04
    made = found("occurrence", occurrence_corpus={"excess": excess, "excess_low": low, "excess_high": high})
    assert made["removal"].level == level
    assert ("embaudit filter" in made["removal"].advice) is (level == "look")


def test_a_task_that_severe_tokens_do_not_hurt_needs_no_remedy() -> None:
    one = found("mitigation", mitigation={"clean": 0.7, "poisoned": 0.71})["remedy_ndcg_10"]
    assert one.level == "ok"
    assert one.sentence.startswith("Severe tokens in all texts do not lower ")
    assert "-" not in one.sentence
    assert not one.advice


def test_texts_dense_with_severe_tokens_are_named_where_there_are_some() -> None:
    assert "In 1 of 40 texts in wikipedia" in found("occurrence")["dense_texts"].sentence
    none = found("occurrence", occurrence_corpus={"dense_texts": 0, "excess": None})
    assert set(none) == {"severe_texts"}
    assert not found("occurrence", occurrence_corpus={"severe_share": None})


def test_a_loss_that_is_noise_reads_as_a_share() -> None:
    assert "erase 0%" in found("sticky", sticky_validation={"loss": -0.03})["worst_token"].sentence
    assert "one copy: 100%" in found("sticky", sticky_dose={"loss": 1.2})["one_copy"].sentence
    assert "erases a measurable share" in found("sticky", sticky_dose={"loss": 0.004})["one_copy"].sentence


def test_the_number_of_bad_tokens_is_the_vocabularys_where_a_sample_tells() -> None:
    estimated = found("sticky")["worst_token"].sentence
    assert "about 3 [2, 5] tokens in the vocabulary erase a quarter or more, of which 3 were validated" in estimated
    for without in (None, {"estimated": None, "estimated_low": None, "estimated_high": None}):
        counted = found("sticky", sticky_severity=without)["worst_token"].sentence
        assert "3 of the 3 validated candidates erase a quarter or more" in counted


@pytest.mark.parametrize(
    ("low", "high", "level"),
    [
        *((0.0, SEARCH.look, "ok"), (0.0, SEARCH.look + 0.01, "not measured")),
        *((SEARCH.look - 0.01, 0.7, "not measured"), (SEARCH.look, 0.7, "look")),
    ],
)
def test_a_search_is_judged_by_its_interval(low: float, high: float, level: str) -> None:
    changed = {"pilot_shortlisted": 5, "pilot_missed": 1, "miss_rate": 0.2, "miss_low": low, "miss_high": high}
    assert found("sticky", sticky_summary=changed)["search"].level == level


def test_the_worst_of_several_is_named() -> None:
    tokens = found("sticky")
    assert "'龸'" in tokens["worst_token"].sentence
    assert tokens["worst_token"].low is not None
    assert "'龸'" in tokens["one_copy"].sentence
    assert found("geometry")["dominating_dimensions"].sentence.endswith("comes from 1 of 32 dimensions.")


def test_collapse_names_its_values_at_one_length_and_leaves_its_domain_in_words() -> None:
    meaning = found("socm", socm_summary={"share_trace_above_bound": 0.5})["thrown_away"].meaning
    assert "Cut to a fixed length, the texts in wikipedia have 0.216 at 16, 0.232 at 32 tokens." in meaning
    assert "tr Σ above 2" not in meaning
    most = found("socm", socm_summary={"share_trace_above_bound": 0.51}, socm_cut=None)["thrown_away"].meaning
    assert (
        most.count("Most texts in wikipedia are outside the range that SOCM is meant for")
        == most.count("tr Σ above 2")
        == 1
    )
    assert "Cut to a fixed length" not in most


def test_what_was_not_measured_is_not_judged() -> None:
    assert found("sticky", sticky_summary=NO_PILOT)["search"].level == "not measured"
    assert "search" not in found("sticky", sticky_summary={"search": "exhaustive"})
    assert set(found("sticky", sticky_dose=None, sticky_summary=None)) == {"worst_token"}
    assert "one_copy" not in found("sticky", sticky_dose={"copies": 2})
    assert found("socm", socm_summary={"pooling_is_mean": False})["thrown_away"].level == "not measured"
    assert found("length", length_summary={"share_long_above": None})["long_pairs"].level == "not measured"
    assert "length_rise" not in found("length", length_rise={"rise": None})
    assert not found("layers", pooled_stat={"within_text_cosine": None})
    assert not found("geometry", geometry={"mean_cosine": None})
    for measure, *tables in (("socm", "socm_summary"), ("length", "length_summary"), TEMPERATURES):
        assert not found(measure, **dict.fromkeys(tables))


@pytest.mark.parametrize(
    ("recommendation", "name", "level"),
    [
        ("yes", "temperature_sts", "look"),
        ("no", "temperature", "ok"),
        ("too few", "temperature", "not measured"),
        ("unsupported", "temperature", "not measured"),
    ],
)
def test_temperatures_are_gains_and_no_problems(recommendation: str, name: str, level: str) -> None:
    changed = {"bin": 0, "task": "sts", "recommendation": recommendation, "tau": 0.9, "score_after": 0.7}
    if recommendation == "too few":
        changed |= {"recommendation": "no", "low": None, "high": None}
    rows = {"tempscale_choice": [{**plausible_rows()["tempscale_choice"][0], **changed, "difference": 0.05}]}
    (one,) = MEASURES["tempscale"].parts().findings(lambda table: rows.get(table, []), QUICK.tempscale)
    assert (one.name, one.level) == (name, level)


def test_every_measure_finds_something_and_its_words_are_whole() -> None:
    tables = {**plausible_rows(), **staged_findings()}
    settings = {name: getattr(QUICK, name) for name in MEASURES}
    made = list(find_all(settings, lambda table: tables[table], ["sts"]))
    assert {measure for measure, _ in made} == {"audit", *MEASURES}
    for _, finding in made:
        assert finding.sentence.endswith(".")
        assert finding.meaning.endswith(".") or not finding.meaning
        if finding.low is not None and finding.high is not None:
            assert finding.value is not None, finding.sentence
            assert finding.low <= finding.value <= finding.high


def test_the_sample_is_no_evidence() -> None:
    assert not list(find_all({}, lambda table: [], []))
    ((measure, finding),) = find_all({}, lambda table: [], ["sts", "wikipedia"])
    assert (measure, finding.level) == ("audit", "not measured")
    assert "sts, wikipedia" in finding.sentence


@pytest.mark.parametrize(
    ("metric", "source", "kept", "words"),
    [
        # The share, and what a smaller collection does to the score.
        ("ndcg_10", "/data/scifact/", 5_183, "on scifact (1,183 of its 5,183 documents, 30 of its 300 queries; among"),
        ("ndcg_10", "hub:mteb/scifact@c0ffee", 1_183, "on hub:mteb/scifact@c0ffee (all 1,183 documents, 30 of its"),
        (
            "ndcg_10",
            "sample",
            1_183,
            "on the embedded sample of retrieval (all 1,183 documents, 30 of its 300 queries;",
        ),
        ("accuracy", "imdb.csv", 30, "on imdb.csv (all 30 texts) is"),
        (
            "accuracy",
            "imdb.csv",
            1_000,
            "on imdb.csv (30 of its 1,000 texts; with more texts to learn from accuracy is",
        ),
        ("spearman", "stsb", 8_628, "on stsb (30 of its 8,628 pairs) is"),
    ],
)
@pytest.mark.parametrize("measure", ["impact", "mitigation"])
def test_a_score_on_a_part_of_a_collection_says_so(
    measure: str, metric: str, source: str, kept: int, words: str
) -> None:
    counts = {"source": source, "undrawn": 0}
    tables = plausible_rows() | {
        "corpus": [
            {"name": "retrieval", "kept": kept, **counts},
            {"name": "retrieval-queries", "kept": 300, **counts},
        ],
    }
    used = {"corpus": "retrieval", "metric": metric, "items": 30, "texts": 1_183 + 30 * (measure == "mitigation")}
    tables[measure] = [row | used for row in tables[measure]]
    rows = list(MEASURES[measure].parts().findings(lambda table: tables.get(table, []), getattr(QUICK, measure)))
    assert len(rows) == 1
    # Mitigation gives the score in brackets.
    assert words.removesuffix(" is") in rows[0].sentence


@pytest.mark.parametrize(
    ("source", "counts", "words"),
    [
        ("a.jsonl", {"read": 1_000, "broken": 10}, None),
        ("a.jsonl", {"read": 1_000, "broken": 11}, "11 of 1,000 rows of wikipedia (a.jsonl): 11 broken (the first: no"),
        ("a.txt.gz", {"read": 352, "undecodable": 264}, "75.0% of a corpus could not be read: 264 of 352 rows"),
        ("a.jsonl", {"read": 60, "blank": 30}, "30 of 60 rows of wikipedia (a.jsonl): 30 blank."),
        # Empty lines are no rows, so they neither count nor hide what does.
        ("a.TXT", {"read": 60, "blank": 30}, None),
        ("a.txt", {"read": 1_090, "blank": 1_000, "undecodable": 1}, "1 of 90 rows"),
        # Not drawn and repeated are not lost.
        ("a.jsonl", {"read": 60, "undrawn": 30, "duplicate": 20}, None),
    ],
)
def test_rows_that_are_lost_are_a_finding(source: str, counts: dict[str, int], words: str | None) -> None:
    row = {
        **dict.fromkeys(("undecodable", "broken", "blank", "duplicate", "undrawn"), 0),
        **{"name": "wikipedia", "source": source, "first_broken": "no text" if "broken" in counts else None, **counts},
    }
    found = [finding for _, finding in find_all({}, lambda table: [row] if table == "corpus" else [], [])]
    assert [(one.name, one.level) for one in found] == ([("dropped_rows", "look")] if words else [])
    if words:
        assert words in found[0].sentence
        assert ("iconv" in found[0].advice) == ("undecodable" in counts)


def test_a_short_page_fits_a_screen_and_begins_with_the_worst(
    full_facts: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    page = audit_page(full_facts)
    # A gate that tripped is worse than what is to be looked at.
    assert page.findings[0].sentence.startswith("Gate tripped: ")
    assert page.findings[1].name == "verdict"
    levels = [one.level for one in page.findings[2:]]
    assert levels == ["problem", "look", "not measured"], "after the verdict and the gate"
    print_page(page, is_full=False)
    printed = capsys.readouterr().out
    assert len(printed.splitlines()) <= SCREEN
    words = " ".join(printed.split())
    for one in page.findings:
        for text in (one.sentence, one.meaning, one.advice):
            assert " ".join(text.split()) in words
    assert "Second-order collapse" not in words
    assert words.endswith(f"embaudit show {full_facts['audit_id']} --full")
