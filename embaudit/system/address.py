"""Warehouse locations: a DuckDB file or a DuckLake address. Only parsing; nothing is opened here.

``ducklake:postgres:KEY=VALUE …?data_path=FOLDER[&schema=NAME]``: the catalog in PostgreSQL, in libpq's keywords
(dbname, host, port, user, service, sslmode …), and the folder of the data files, which must be accessible from every
machine.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias
from urllib.parse import parse_qsl, quote

from embaudit.words.errors import UsageError

PREFIX = "ducklake:"
EXAMPLE = "ducklake:postgres:dbname=embaudit host=db.example?data_path=/srv/embaudit/lake"
# Not allowed in an address: addresses are shown in output, in logs and in Prefect's UI.
SECRETS = {"password", "sslpassword", "passfile", "oauth_client_secret"}
SETTINGS = {"data_path", "schema"}


@dataclass(frozen=True)
class Lake:
    """A DuckLake: its catalog and its data files.

    Attributes:
        connection: the PostgreSQL database as libpq ``key=value`` pairs, never with a password.
        data_path: the folder of the Parquet files.
        schema: the catalog's schema in that database; several warehouses can share one database.
    """

    connection: str
    data_path: Path
    schema: str = "public"

    def __str__(self) -> str:
        schema = "" if self.schema == "public" else f"&schema={quote(self.schema)}"
        return f"{PREFIX}postgres:{self.connection}?data_path={quote(str(self.data_path))}{schema}"


Warehouse: TypeAlias = Path | Lake


def warehouse_at(place: str | Path | Lake) -> Warehouse:
    """The warehouse named by a user, a setting or a flow parameter.

    Raises:
        UsageError: if it is an invalid address, contains a password, or is a path with a question mark.
    """
    if isinstance(place, Lake):
        return place
    if not str(place).startswith(PREFIX):
        path = Path(place).expanduser().absolute()
        if "?" in str(path):
            # duckdb 1.5.5 reads it as the start of parameters and puts the write-ahead log in the wrong folder.
            raise UsageError(
                f"DuckDB cannot use a path with a question mark: {path}.",
                next_step="Choose another path: --warehouse PATH",
            )
        return path
    return _lake(str(place).removeprefix(PREFIX))


def _lake(address: str) -> Lake:
    kind, _, rest = address.partition(":")
    connection, separator, query = rest.partition("?")
    if kind == "postgresql" or "://" in address or connection.startswith("//"):
        raise _invalid_address("it is a URI")
    if kind != "postgres":
        raise _invalid_address("its catalog is not PostgreSQL")
    words = {match[1].lower() for match in re.finditer(r"(\w+)\s*=", connection)}
    if given := sorted(words & SECRETS):
        raise UsageError(
            f"The warehouse address contains a {given[0]}, and addresses are shown in output and in Prefect's UI.",
            next_step="Remove it from the address and use PGPASSWORD, a password file (PGPASSFILE) or a service in "
            "pg_service.conf (service=NAME) instead.",
        )
    settings = dict(parse_qsl(query, keep_blank_values=True))
    if unknown := sorted(settings.keys() - SETTINGS):
        raise _invalid_address(f"it has no setting {unknown[0]}")
    if not separator or not settings.get("data_path"):
        raise _invalid_address("it names no data_path")
    folder = Path(settings["data_path"]).expanduser()
    if not folder.is_absolute() or re.match(r"\w+:/", settings["data_path"]):
        raise _invalid_address("its data_path is not an absolute path")
    schema = settings.get("schema", "public")
    if not re.fullmatch(r"[A-Za-z_]\w*", schema):
        raise _invalid_address("its schema is not a plain name")
    return Lake(connection.strip(), folder, schema)


def _invalid_address(why: str) -> UsageError:
    # The address itself is not repeated: it may contain a password.
    return UsageError(f"The warehouse address cannot be used: {why}.", next_step=f"It looks like this: {EXAMPLE}")
