"""What can be asked: one frozen model a question, from which its command, its call and its documentation are made.

A field says everything about a parameter once: name, type, bounds, default, and the sentence that ``--help``, a call's
help and docs/commands.md print. Fields with ``kw_only=False`` are a question's arguments, in their order.

Parts that questions share: each parameter is described here once, whichever question has it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from embaudit.declared.option import Argument, Option, written_as
from embaudit.stores.place import StoreOptions
from embaudit.system.small_files import complaint
from embaudit.words.errors import UsageError

if TYPE_CHECKING:
    from embaudit.measures.quality.material import Material, MaterialLimits
    from embaudit.questions.passport.passport import Passport
    from embaudit.questions.report import Report
    from embaudit.questions.vectors.fingerprint import Fingerprint


@dataclass(frozen=True)
class Progress:
    """Who waits for an answer, and is told how far it is.

    Attributes:
        say: a line, before texts are sent and when something is known early.
        done: what is done, how much more of it, and of how much altogether, if that is known.
        asked: of what an endpoint is asked: what, how much so far, and of how much.
        keeps_what_ran: whether Ctrl-C ends in an answer on what ran, where a question has parts.
    """

    say: Callable[[str], None] = lambda line: None
    done: Callable[[str, int, int | None], None] = lambda what, more, total: None
    asked: Callable[..., None] | None = None
    keeps_what_ran: bool = False

    def comparing(self, what: str) -> None:
        self.say(f"Comparing {what} …")


QUIET = Progress()


@dataclass(frozen=True)
class SentTexts:
    """Texts that a question sends to whatever of ``to`` is an endpoint.

    Attributes:
        what: is sent, as the end of "Texts are sent to …: ".
        warning: what that means if it is another machine, as the end of a sentence.
    """

    to: Sequence[Any]
    what: str
    warning: str


class Question(BaseModel, ABC):
    """A question with all of its parameters; its docstring is its command's help."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    # What the question's command and call are called.
    asks: ClassVar[str]

    @model_validator(mode="before")
    @classmethod
    def _none_is_nothing(cls, asked: Any) -> Any:
        """None for a mapping is an empty one."""
        if not isinstance(asked, dict):
            return asked
        fields = cls.model_fields
        return {
            name: value
            for name, value in asked.items()
            if value is not None or name not in fields or fields[name].default != {}
        }

    @model_validator(mode="after")
    def _is_allowed(self) -> Self:
        for name, field in type(self).model_fields.items():
            members, value = written_as(field).members, getattr(self, name)
            if members and value != field.default:
                for one in [value] if isinstance(value, str) else value:
                    if one not in members:
                        raise ValueError(f"{name}: {one!r} is none of {', '.join(members)}")
        return self

    @classmethod
    def of(cls, **asked: Any) -> Self:
        """A question from what a user wrote.

        Raises:
            UsageError: if a parameter does not exist, or its value is not allowed.
        """
        try:
            return cls(**asked)
        except ValidationError as error:
            first = dict(error.errors()[0])
            raise UsageError(
                f"What is asked of embaudit {cls.asks} is invalid: {complaint(first, cls)}.",
                next_step=f"Options: embaudit {cls.asks} --help",
            ) from error

    @classmethod
    def about(cls) -> tuple[str, ...]:
        """Names of what it is asked of, and of what that is compared with or asked through."""
        return cls.arguments()

    @classmethod
    def arguments(cls) -> tuple[str, ...]:
        """Names of what is given by place."""
        return tuple(name for name, field in cls.model_fields.items() if field.kw_only is False)

    def texts_sent(self) -> Iterator[SentTexts]:
        """What leaves this machine if a function is an endpoint."""
        yield from ()

    @property
    def is_live(self) -> bool:
        """Whether it is asked anew even if nothing that it names has changed."""
        return False

    def also_read(self) -> Iterator[Path]:
        """Folders of this machine that an answer depends on, without being named."""
        yield from ()

    @abstractmethod
    def answer(self, progress: Progress = QUIET) -> Report | Passport | Fingerprint:
        """Find the answer.

        Raises:
            EmbauditError: if something that is named cannot be read or asked.
        """


# What texts leave with the user's own material, and what that means.
MATERIAL_LEAVES = (
    "the pairs, queries and documents, and a few hundred made-up ones",
    "your pairs and documents would leave this one",
)
# What a model may be called: it is shown in sentences, and names a file.
MODEL_NAME = r"^[A-Za-z0-9][A-Za-z0-9 ._:/-]{0,99}$"
PathName: TypeAlias = str | Path
FUNCTION = Field(
    description="A checkpoint (packaged:NAME, a local folder, or owner/name@revision on the hub), an endpoint's "
    "address (http://localhost:8080), or a Python object or its name (python:MODULE:NAME; docs/functions.md)."
)
Function: TypeAlias = Annotated[Any, Argument(metavar="FUNCTION", holds="function"), FUNCTION]
Other: TypeAlias = Annotated[
    Any,
    Option("with", metavar="OTHER", holds="function"),
    Field(
        description="What to compare with: an endpoint's address (http://localhost:8080), a Python object's name "
        "(python:MODULE:NAME), or a checkpoint."
    ),
]


class StorePart(StoreOptions):
    """Of questions about a store."""

    store: Annotated[PathName, Argument(metavar="STORE", holds="store")] = Field(
        kw_only=False,
        description="Where the vectors are: a file, a folder, a database or an address (docs/vectors.md lists what is "
        "read, docs/search.md what is searched by itself).",
    )


class QuerySettingsPart(BaseModel):
    """Of questions that a store's own search is asked."""

    query_settings: Annotated[
        Mapping[str, int], Option("setting", metavar="NAME=NUMBER", example="efSearch=64", default="the store's own")
    ] = Field({}, description="What the application sets in a query (efSearch=64).")


class SeedPart(BaseModel):
    """Of questions that draw rows or texts."""

    seed: Annotated[int, Option(metavar="N")] = Field(0, ge=0, description="Random seed of every draw.")


class ExplanationPart(BaseModel):
    """Of questions that look for what explains a difference."""

    with_explanation: Annotated[bool, Option("no-explanation", negates=True)] = Field(
        True, description="Say whether there is a difference, and do not search for the reason."
    )


class OtherPrecisionPart(BaseModel):
    """Of questions that compare with another function."""

    dtype: Annotated[Literal["float32", "bfloat16", "float16"], Option("with-dtype")] = Field(
        "float32", description="The precision of OTHER, if it is a checkpoint."
    )


class MaterialPart(BaseModel):
    """Of questions that measure on texts: the user's own, or the embedded sample's."""

    pairs: Annotated[Sequence[PathName], Option(is_file=True)] = Field(
        (), description="Your own scored pairs, a file per data set."
    )
    data: Annotated[Sequence[PathName], Option(is_file=True)] = Field(
        (), description="Your own judged queries, a folder in BEIR's layout."
    )

    def material(self, limits: MaterialLimits | None = None) -> Material:
        """The user's texts; the embedded sample's for what is not given.

        Raises:
            CorpusError: if a file cannot be read.
        """
        from dataclasses import replace

        from embaudit.corpora.judged import load_judged
        from embaudit.corpora.load import load_corpus
        from embaudit.measures.quality.material import FEW, sample_material, user_material

        sample = sample_material()
        if not self.pairs and not self.data:
            return sample
        given = user_material(
            [load_corpus("sts", str(path)) for path in self.pairs],
            [load_judged(str(folder)) for folder in self.data],
            limits or FEW,
        )
        return replace(
            given,
            pairs=given.pairs if self.pairs else sample.pairs,
            collections=given.collections if self.data else sample.collections,
        )


class CorpusPart(MaterialPart):
    """Of those that also search texts of the user's, with queries whose answers are known."""

    golden: Annotated[PathName | None, Option(metavar="FILE", is_file=True)] = Field(
        None,
        description="Golden queries (CSV or JSON lines with query and expect; docs/why.md) that should find texts of "
        "--corpus, by id or text.",
    )
    corpus: Annotated[PathName | None, Option(metavar="SOURCE", holds="source")] = Field(
        None, description="Texts that are searched: a file, a folder, or hub:owner/name."
    )


def names_store(given: Any) -> bool:
    """Whether what may be a store or a function is a store: known by its place alone, or a file or folder of one.

    An address may be of a store or an endpoint, and is not asked.
    """
    if not isinstance(given, str | Path):
        return False
    if is_known_store(given):
        return True
    from embaudit.stores.kinds import only_file_of
    from embaudit.stores.place import StorePlace

    place = StorePlace(str(given))
    is_checkpoint = place.holds("config.json") or place.holds("modules.json")
    return place.is_path and (place.path.is_file() or (not is_checkpoint and only_file_of(place) is not None))


def is_known_store(given: Any) -> bool:
    """Whether the form of a name, or what lies there, is that of a store."""
    from embaudit.embedders.endpoint.recognise import is_address
    from embaudit.stores.kinds import kind_of
    from embaudit.stores.place import StorePlace

    if not isinstance(given, str | Path):
        return False
    # By its ending alone: Parquet somewhere else.
    is_file = Path(str(given).partition("?")[0]).suffix == ".parquet"
    return (is_file or not is_address(str(given))) and kind_of(StorePlace(str(given))) is not None
