"""The page of a verified passport: the page of a comparison, with what the passport says of its checkpoint."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from embaudit.declared.document import Column, Page, Section, Table
from embaudit.questions.parity.page import parity_page
from embaudit.questions.passport.passport import Passport

if TYPE_CHECKING:
    from embaudit.questions.passport.verify import PassportReport

# Of a function whose files nobody sees.
NOT_KNOWN = "not known"


def passport_page(report: PassportReport) -> Page:
    """The verdict is the first finding and takes the place of the first problem."""
    page = parity_page(report)
    return replace(page, kind="Passport of", sections=[*page.sections, _declared(report.passport)])


def _declared(passport: Passport) -> Section:
    reading, settings = passport.reading, passport.settings
    prompts = {kind: prompt for kind, prompt in reading.prompts.model_dump().items() if prompt}
    weights = passport.checkpoint.weights_sha256
    unlimited = "all" if weights else NOT_KNOWN
    tokens_read = unlimited if reading.max_length is None else f"{reading.max_length:,}"
    asked = {name: value for name, value in settings.model_dump().items() if value is not None}
    rows = [
        ("dimension", f"{reading.dimension}{', normalised' if reading.is_normalised else ''}"),
        ("pooling", reading.pooling or NOT_KNOWN),
        ("modules after it", ", ".join(reading.modules) or "none"),
        ("tokens read", tokens_read),
        ("prompts", ", ".join(f"{kind}: {prompt!r}" for kind, prompt in prompts.items()) or "none"),
        ("not as declared", ", ".join(f"{name} {value!r}" for name, value in asked.items()) or "nothing"),
        ("architecture", passport.checkpoint.architecture),
        ("weights", f"sha256 {weights}" if weights else NOT_KNOWN),
        ("made with", ", ".join(f"{name} {version}" for name, version in passport.made_with.items())),
    ]
    return Section("What the passport says", [Table((Column("of"), Column("it says", is_prose=True)), rows)])
