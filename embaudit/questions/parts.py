"""Parts that questions share: each parameter is described here once, whichever question has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, Field

from embaudit.declared.option import Argument, Option
from embaudit.stores.place import StoreOptions

if TYPE_CHECKING:
    from embaudit.measures.quality.material import Material, MaterialLimits

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
