"""How endpoints and Python objects are asked, as part of a question: a field is an option, a keyword and a key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, Field

from embaudit.declared.option import Option
from embaudit.embedders.endpoint.dialects import DIALECTS

if TYPE_CHECKING:
    from embaudit.embedders.opened import CallOptions, Given

SeveralNames = str | Sequence[str] | None


class EndpointOptions(BaseModel):
    """Of every question that takes a function."""

    api: Annotated[SeveralNames, Option(members=tuple(DIALECTS))] = Field(
        None,
        description="An endpoint's API; by default, recognised. Once for all endpoints, or once for each, in their "
        "order.",
    )
    model: Annotated[SeveralNames, Option(metavar="NAME")] = Field(
        None, description="The model's name there, if it serves several. Likewise."
    )
    dimensions: Annotated[int | None, Option(metavar="N")] = Field(
        None, ge=1, description="How many numbers an endpoint is asked for in a vector, if its API has such a field."
    )
    fields: Annotated[Mapping[str, Any], Option("field", metavar="NAME=VALUE")] = Field(
        {}, description="Another field of the request to an endpoint."
    )
    requests_per_minute: Annotated[int | None, Option(metavar="N")] = Field(
        None, ge=1, description="Ask an endpoint no more often. By default, as fast as it answers."
    )

    def calls(self, *given: Given) -> tuple[CallOptions, ...]:
        """How each of these is asked."""
        from embaudit.embedders.opened import calls_of

        names = (*EndpointOptions.model_fields, *RoleOptions.model_fields, *CacheOptions.model_fields)
        return calls_of(given, {name: getattr(self, name) for name in names if name in type(self).model_fields})


class RoleOptions(EndpointOptions):
    """Of a question that asks for queries and documents."""

    query_prompt: Annotated[SeveralNames, Option(metavar="TEXT")] = Field(
        None,
        description="What the callers of an endpoint or a Python object put before queries. Once for all, or once for "
        "each.",
    )
    document_prompt: Annotated[SeveralNames, Option(metavar="TEXT")] = Field(
        None, description="The same before documents."
    )
    query_fields: Annotated[Mapping[str, Any], Option("query-field", metavar="NAME=VALUE")] = Field(
        {},
        description="A field by which an endpoint is told that texts are queries. By default, as its API has it.",
    )
    document_fields: Annotated[Mapping[str, Any], Option("document-field", metavar="NAME=VALUE")] = Field(
        {}, description="The same of documents."
    )


class CacheOptions(BaseModel):
    """Of a question that keeps what endpoints give for the next time."""

    fresh: bool = Field(
        False, description="Forget the vectors that an endpoint gave before, and ask for all of them again."
    )
