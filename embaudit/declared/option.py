"""How a field of a request or question is written on the command line, where its name and type do not say it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo


@dataclass(frozen=True)
class Option:
    """Stands in the field's ``Annotated``.

    Attributes:
        name: without dashes; by default, the field's.
        metavar: what stands for the value in ``--help``; of an argument, its name there.
        members: the values that are allowed, where the type does not list them.
        example: a value, for the message about a wrong one.
        is_file: whether it is the path of a file that must exist; ``may_be_folder``: or of a folder.
        negates: whether it is a flag that makes the field false.
        holds: ``store``, ``function``, ``source`` (of texts) or ``object`` (of Python), where the value names one.
        default: what ``--help`` says of it where the default is found out later.
    """

    name: str = ""
    metavar: str = ""
    members: tuple[str, ...] = ()
    example: str = ""
    is_file: bool = False
    may_be_folder: bool = False
    negates: bool = False
    holds: str = ""
    default: str = ""


class Argument(Option):
    """Of a field that is given by its place on the command line, too; its metavar is its name there."""


PLAIN = Option()


def written_as(field: FieldInfo) -> Option:
    return next((one for one in field.metadata if isinstance(one, Option)), PLAIN)
