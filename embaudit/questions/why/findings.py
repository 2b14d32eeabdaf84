"""What is said of a store besides its cases."""

from __future__ import annotations

from embaudit.declared.rule import Finding, Rule
from embaudit.questions.report import HOW_IT_IS_READ
from embaudit.questions.vectors.embedded import WHAT_WAS_EMBEDDED, say_so
from embaudit.questions.vectors.roles import PLURAL
from embaudit.questions.vectors.text_copies import copy_findings, text_copies
from embaudit.questions.why.walk import SearchTraces
from embaudit.stores.store import Store
from embaudit.stores.template import in_words

SEARCH = Rule(
    "search", reason="`not measured`: the store's own search failed; ranks are exact, and everything else is kept"
)
ANOTHER_INDEX = Rule(
    "another_index", look_if="none of several expected rows is in the store", reason="they may belong to another one"
)
FOREIGN_INDEX = Rule(
    "foreign_index",
    "share of rows drawn at random whose vectors are the function's",
    look=0.5,
    worse="lower",
    look_if="below {look}",
    reason="most of the index was built otherwise",
)


def findings_of(store: Store, walked: SearchTraces, failed: str) -> list[Finding]:
    """What is known of the store, whichever case it is."""
    found = []
    if failed:
        found.append(SEARCH.finding("not measured", f"The store's own search: {failed}.", "Ranks are exact."))
    is_unknown = all(case.row is None and not case.near_ids and case.in_another is None for case in walked.cases)
    if len(walked.cases) > 1 and is_unknown and not any(walked.gathered.rows.values()):
        found.append(
            ANOTHER_INDEX.finding(
                "look",
                f"None of the {len(walked.cases):,} expected rows is in the store: are they of another index?",
                advice="Name the column of their ids: --id COLUMN; or the store that they belong to.",
            )
        )
    answers = [case.answer for case in walked.cases if case.answer is not None and case.answer.failed]
    if answers:
        found.append(
            SEARCH.finding(
                "not measured",
                f"The store's own search failed for {len(answers):,} of {len(walked.cases):,} queries: "
                f"{answers[0].failed}.",
                "Everything else is kept.",
            )
        )
    built = walked.built
    if built is not None and built.template is not None:
        found.append(
            WHAT_WAS_EMBEDDED.finding(
                "look",
                f"The store embeds {in_words(built.template)}, and not the text column alone.",
                advice=say_so(built.template),
            )
        )
    if built is not None and built.form is not None and built.own < FOREIGN_INDEX.look:
        found.append(
            FOREIGN_INDEX.finding(
                "look",
                f"Of rows drawn at random, {built.own:.0%} are the function's: most of this index was built otherwise"
                + (f", by asking it for {PLURAL[built.as_role]}." if built.as_role else "."),
                advice="Encode the rows again, as documents."
                if built.as_role
                else "embaudit vectors STORE FUNCTION says how.",
                value=built.own,
            )
        )
    found += copy_findings(text_copies(walked.gathered.profile))
    found += [HOW_IT_IS_READ.finding("look", note) for note in store.notes]
    return found
