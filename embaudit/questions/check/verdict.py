"""One line above everything: may this checkpoint be served, and if not, why not?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from embaudit.declared.rule import COULD_NOT_RUN, Finding, Level, Rule
from embaudit.measures.integrity import TOKENIZER

Kind = Literal["do not serve", "could not be checked", "look first", "nothing found wrong", "files only", "not checked"]
LEVEL_OF: dict[str, Level] = {
    "do not serve": "problem",
    "could not be checked": "not measured",
    "look first": "look",
    "nothing found wrong": "ok",
    # Never more than that: what a network computes is not in its files.
    "files only": "look",
    "not checked": "not measured",
}
# The finding which says that the network was not run.
FILES_ONLY = Rule("files_only", reason="`not measured`: the network was not run (`--files`)")
# The measures of an audit that say whether the checkpoint may be served; the others describe one that may.
FIRST = ("integrity", "quality")
# Where one finding explains another, the cause comes first. What is not listed comes after these, in order of running.
CAUSES = (
    "not_loadable",
    # Of a served model: what was asked, and whether it is one model that answered.
    *("dimensions_ignored", "unsteady"),
    # With broken ids everything behind them misleads.
    *TOKENIZER,
    "same_tokens",
    "misplaced_rows",
    *("weights_from_file", "not_finite", "zero_vector", "value_range", "outlier", "constant_matrices"),
    *("untrained_layers", "untrained_embeddings", "untrained_matrices", "reset_gains", "equal_layers", "layer_order"),
    *("transposed_matrices", "position_order", "segment_size"),
    *("zero_rows", "repeated_rows", "untrained_rows"),
    *("replaced_blocks", "moved_blocks", "uneven_blocks"),
    *(
        "positions_not_computed",
        "causal_attention",
        "attention_heads",
        "unread_weights",
        "one_function",
        "rounded_weights",
    ),
    *("runs_in_float16", "runs_in_bfloat16", "two_weight_files", "unusual_config", "several_poolings"),
    *("module_not_listed", "dimensions_disagree", "better_pooling", "better_prompts", "better_case"),
    *("better_special_tokens", "better_length", "better_similarity", "better_dimensions"),
    *("cut_texts", "short_limit", "limit_beyond_positions"),
    *("computes_otherwise", "only_unread_changed", "nothing_changed", "hardly_changed"),
    *("limits_disagree", "truncation_side", "undeclared_pooling", "prompt_not_picked"),
    *("lost_in_layer", "same_vector", "collapsed", "no_better_than_words"),
    *("gained_on_data", "lost_on_sample"),
)

FIT = "So far fit to be served, as far as files, network and scores tell"
# What is seen of a defect, not the defect: if a finding to look at explains it, that is the likely cause.
EFFECTS = CAUSES[CAUSES.index("lost_in_layer") :]
EXPLAIN = CAUSES[: CAUSES.index("cut_texts")]


@dataclass(frozen=True)
class Verdict:
    """What follows from all findings.

    Attributes:
        cause: the finding that most likely explains the others, which may be one to look at; None unless it is
            ``do not serve``.
        first: the finding to read first: the cause, what to look at, or what could not be checked; None without any.
        looks: how many findings to look at first.
        unmeasured: what was not measured, in the findings' words.
    """

    kind: Kind
    cause: Finding | None
    looks: int
    unmeasured: tuple[str, ...]
    first: Finding | None = None

    @property
    def line(self) -> str:
        """The verdict in one line."""
        if self.kind == "do not serve":
            assert self.cause is not None
            return f"Do not serve: {self.cause.sentence}"
        if self.kind == "look first":
            return f"Look at {self.looks} thing{'s' if self.looks > 1 else ''} first."
        if self.kind == "files only":
            found = f"{self.looks} thing{'s' if self.looks > 1 else ''} to look at" if self.looks else "nothing"
            wrong = "" if self.looks else " wrong"
            return f"Only files were looked at, and {found} found{wrong}: the network was not run."
        if self.kind == "could not be checked":
            return "Could not be checked as a whole; what was checked is sound."
        if self.kind == "not checked":
            return f"Whether it is sound was not checked: {' and '.join(FIRST)} were not measured."
        return "Nothing found wrong."

    @property
    def so_far(self) -> str:
        """The verdict while the other measures of an audit run: what they find can add to it, and not contradict it."""
        first = self.first
        reason = "" if first is None else f"{first.sentence}{f' → {first.advice}' if first.advice else ''}"
        if self.kind == "do not serve":
            return f"Do not serve: {reason}"
        if self.kind == "look first":
            count = f"{self.looks} thing{'s' if self.looks > 1 else ''} to look at{', first' if self.looks > 1 else ''}"
            return f"{FIT} ({count}: {reason.rstrip('.')})."
        if self.kind == "could not be checked":
            return f"So far not all could be checked, and what was checked is sound: {reason}"
        return f"{FIT}." if self.kind == "nothing found wrong" else self.line


def verdict_of(findings: Sequence[Finding]) -> Verdict:
    """The verdict that follows from findings, in the order in which the parts ran."""
    problems = [finding for finding in findings if finding.level == "problem"]
    looks = sum(finding.level == "look" for finding in findings)
    unmeasured = tuple(finding.sentence for finding in findings if finding.level == "not measured")
    if problems:
        cause = min(problems, key=lambda finding: _rank(finding.name))
        explaining = [finding for finding in findings if finding.level == "look" and finding.name in EXPLAIN]
        if cause.name in EFFECTS and explaining:
            cause = min(explaining, key=lambda finding: _rank(finding.name))
        return Verdict("do not serve", cause, looks, unmeasured, cause)
    failed = next((finding for finding in findings if finding.name.endswith(COULD_NOT_RUN)), None)
    if failed is not None:
        return Verdict("could not be checked", None, looks, unmeasured, failed)
    first = min(
        (finding for finding in findings if finding.level == "look"), key=lambda one: _rank(one.name), default=None
    )
    if any(finding.name == FILES_ONLY.name for finding in findings):
        return Verdict("files only", None, looks, unmeasured, first)
    return Verdict("look first" if looks else "nothing found wrong", None, looks, unmeasured, first)


def verdict_of_audit(found: Iterable[tuple[str, Finding]]) -> Verdict:
    """The verdict of an audit's findings, each with its measure: problems of other measures are to be looked at."""
    pairs = list(found)
    findings = [
        replace(finding, level="look") if finding.level == "problem" and measure not in FIRST else finding
        for measure, finding in pairs
    ]
    verdict = verdict_of(findings)
    is_checked = set(FIRST) <= {measure for measure, _ in pairs}
    return verdict if is_checked or verdict.kind == "do not serve" else replace(verdict, kind="not checked")


def _rank(name: str) -> int:
    return CAUSES.index(name) if name in CAUSES else len(CAUSES)
