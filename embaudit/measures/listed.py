"""The one list of measures, in the order in which an audit runs and shows them, and those that other packages bring.

Those come by entry points of the group ``embaudit.measures`` (docs/measures.md).

Profiles (``quick``, ``probes``, ``standard``, ``paper``): what an audit computes, as a typed, versioned object.

Where things are (warehouse, staging) is in ``embaudit.system.settings``.

The findings of an audit: those of its measures, and those about the audit as a whole.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, Self, TypeVar, cast

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, create_model

from embaudit.declared.rule import Finding, Rows, Rule
from embaudit.measures import (
    attractors,
    chunks,
    compression,
    geometry,
    impact,
    integrity,
    languages,
    layers,
    length,
    meaning,
    mitigation,
    occurrence,
    placement,
    position,
    quality,
    socm,
    sticky,
    surface,
    tempscale,
)
from embaudit.measures.measure import Asked, Measure, MeasureSettings
from embaudit.system.installed import installed, unusable
from embaudit.system.small_files import complaint, read_toml
from embaudit.words.errors import UsageError, did_you_mean

GROUP = "embaudit.measures"


def installed_measures(own: Collection[Measure]) -> Iterator[Measure]:
    """The measures of other packages.

    Args:
        own: embaudit's measures, whose names are taken.

    Raises:
        UsageError: if one cannot be imported, is no ``Measure``, or takes a name that is taken.
    """
    names = {one.name for one in own}
    for entry, measure in installed(GROUP, Measure, "measure"):
        if measure.name in names or not measure.name.isidentifier():
            raise unusable(entry, "measure", f"its name, {measure.name!r}, is taken or no Python name")
        names.add(measure.name)
        yield measure


__all__ = ["DEFAULT_MEASURES", "MEASURES", "Measure", "MeasureName", "MeasureSettings"]

# The only place that lists them.
_OWN = (
    # First: with a broken checkpoint, no other figure means anything.
    integrity.MEASURE,
    quality.MEASURE,
    sticky.MEASURE,
    socm.MEASURE,
    layers.MEASURE,
    geometry.MEASURE,
    surface.MEASURE,
    meaning.MEASURE,
    position.MEASURE,
    attractors.MEASURE,
    compression.MEASURE,
    chunks.MEASURE,
    languages.MEASURE,
    length.MEASURE,
    tempscale.MEASURE,
    occurrence.MEASURE,
    placement.MEASURE,
    impact.MEASURE,
    mitigation.MEASURE,
)
MEASURES: dict[str, Measure] = {measure.name: measure for measure in (*_OWN, *installed_measures(_OWN))}
DEFAULT_MEASURES = tuple(name for name, measure in MEASURES.items() if measure.is_default)


def _known(name: str) -> str:
    if name not in MEASURES:
        raise ValueError(f"no measure is called {name!r}; choose from {', '.join(MEASURES)}")
    return name


MeasureName = Annotated[str, AfterValidator(_known)]


S = TypeVar("S", bound=MeasureSettings)


class _Profile(BaseModel):
    """Everything that decides what an audit computes, apart from checkpoint, corpora, device and seed."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    version: int
    description: str
    measures: tuple[MeasureName, ...] = Field(
        default=DEFAULT_MEASURES, min_length=1, description="measures of an audit that names none"
    )

    def of(self, kind: type[S]) -> S:
        """One measure's settings, by their class."""
        (settings,) = (getattr(self, name) for name, measure in MEASURES.items() if measure.settings is kind)
        return cast(S, settings)

    def settings_of(self, measure: str) -> dict[str, object]:
        """One measure's settings in JSON form, for the audit log."""
        settings: MeasureSettings = getattr(self, measure)
        return settings.model_dump(mode="json")

    def asked_of(self, measures: Collection[str]) -> dict[str, object]:
        """The settings of these measures, in JSON form and without the description and which measures an audit runs.

        Settings of other measures are left out, so that a measure added to embaudit later does not change the question
        of an old audit.
        """
        return self.model_dump(
            mode="json", exclude={"description", "measures", *(name for name in MEASURES if name not in measures)}
        )

    def requested(self, request: Asked) -> Self:
        """The profile with one request's changes.

        Raises:
            UsageError: if a change is invalid.
        """
        changed = {name: _changed(name, getattr(self, name), request) for name in MEASURES}
        return self.model_copy(update=changed)


def _changed(measure: str, settings: MeasureSettings, request: Asked) -> MeasureSettings:
    changes = request.measure_settings.get(measure, {})
    try:
        changed = type(settings).model_validate({**settings.model_dump(), **changes}) if changes else settings
    except ValidationError as error:
        first = complaint(dict(error.errors()[0]), type(settings))
        raise UsageError(
            f"The settings of {measure} are invalid: {first}.", next_step="docs/settings.md lists them all."
        ) from error
    return changed.requested(request)


if TYPE_CHECKING:
    Profile = _Profile
else:
    # The file has a table for each measure.
    Profile = create_model(
        "Profile",
        __base__=_Profile,
        __doc__=_Profile.__doc__,
        **{name: (measure.settings, measure.settings()) for name, measure in MEASURES.items()},
    )


def profile_names() -> list[str]:
    """The built-in profiles, cheapest first."""
    return ["quick", "probes", "standard", "paper"]


def load_profile(name: str) -> Profile:
    """Read a profile by name or from a TOML file.

    Raises:
        UsageError: if there is no such profile, or the file is invalid.
    """
    packaged = files("embaudit.measures").joinpath("profiles")
    if name in profile_names():
        return read_toml(packaged.joinpath(f"{name}.toml"), Profile, what="profile")
    path = Path(name)
    if path.suffix == ".toml" and path.is_file():
        example = f"Compare it with {packaged.joinpath('quick.toml')}."
        return read_toml(path, Profile, what="profile", next_step=example)
    raise UsageError(
        f"Unknown profile {name!r}.",
        next_step=did_you_mean(name, profile_names()) + f"Choose {', '.join(profile_names())} or a .toml file.",
    )


REAL_CORPORA = Rule(
    "real_corpora",
    "corpora",
    reason="`not measured` if any corpus is the embedded sample: a sample of a few texts is for trying out embaudit",
)
DROPPED_ROWS = Rule(
    "dropped_rows",
    "`corpus`: (`undecodable` + `broken` + `blank`) / `read` of any corpus",
    look=0.01,
    is_share=True,
    look_if="above {look}",
    reason="a hundredth moves no figure by more than its interval; what is lost beyond that is seldom lost at random "
    "(all lines with an accent of a Latin-1 file). The empty lines of a `.txt` file are no rows. The reason of the "
    "first broken row is given",
)
# Stands in for the measure's name in findings about the audit itself.
AUDIT = "audit"


def find_all(
    settings: Mapping[str, MeasureSettings], rows: Rows, sample_corpora: Iterable[str]
) -> Iterator[tuple[str, Finding]]:
    """(measure, finding) pairs, in the order in which an audit runs the measures.

    Args:
        settings: by measure, for the measures that the audit ran.
        rows: the audit's tables.
        sample_corpora: names of the corpora taken from the embedded sample.
    """
    names = list(sample_corpora)
    if names:
        yield AUDIT, _sample_only(names)
    if dropping := [found for row in rows("corpus") if (found := _dropped(row)) and found.share > DROPPED_ROWS.look]:
        yield AUDIT, _dropped_rows(sorted(dropping, key=lambda one: (-one.share, one.words)))
    for name, measure in MEASURES.items():
        if name in settings:
            yield from ((name, finding) for finding in measure.parts().findings(rows, settings[name]))


class _Dropped(NamedTuple):
    """What a corpus lost when it was read."""

    share: float
    words: str
    is_encoding: bool


def _dropped(corpus: dict[str, Any]) -> _Dropped | None:
    """None if there were no rows."""
    # Between the lines of a plain text there are empty ones, which are no rows; a document without text is one.
    is_plain = str(corpus["source"]).lower().removesuffix(".gz").endswith(".txt")
    blank = 0 if is_plain else corpus["blank"]
    counts = {"not UTF-8": corpus["undecodable"], "broken": corpus["broken"], "blank": blank}
    lost, read = sum(counts.values()), corpus["read"] - corpus["blank"] + blank
    reason = f" (the first: {corpus['first_broken']})" if corpus["first_broken"] else ""
    kinds = (f"{count:,} {kind}{reason if kind == 'broken' else ''}" for kind, count in counts.items() if count)
    if not read:
        return None
    return _Dropped(
        lost / read,
        f"{lost:,} of {read:,} rows of {corpus['name']} ({corpus['source']}): {', '.join(kinds)}",
        2 * counts["not UTF-8"] > lost,
    )


def _dropped_rows(dropping: Sequence[_Dropped]) -> Finding:
    return DROPPED_ROWS.finding(
        "look",
        f"{dropping[0].share:.1%} of a corpus could not be read: {'; '.join(one.words for one in dropping)}.",
        "Figures on such a corpus describe what is left of it, which may be of another kind.",
        "Convert the file: iconv -f latin1 -t utf-8 FILE > converted"
        if dropping[0].is_encoding
        else "Mend the file; docs/corpora.md says what a row needs.",
        dropping[0].share,
    )


def _sample_only(names: list[str]) -> Finding:
    return REAL_CORPORA.finding(
        "not measured",
        f"How the checkpoint does on your texts is not known: {', '.join(names)} came from the embedded sample.",
        "The sample is enough to try embaudit out; conclusions need real corpora.",
        " ".join(("embaudit audit CHECKPOINT", *(f"--corpus {name}=FILE" for name in names))),
    )
