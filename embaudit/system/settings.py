"""Settings of this machine: the ``EMBAUDIT_*`` environment variables as one object.

Warehouse locations: a DuckDB file or a DuckLake address. Only parsing; nothing is opened here.

``ducklake:postgres:KEY=VALUE …?data_path=FOLDER[&schema=NAME]``: the catalog in PostgreSQL, in libpq's keywords
(dbname, host, port, user, service, sslmode …), and the folder of the data files, which must be accessible from every
machine.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias
from urllib.parse import parse_qsl, quote, urlsplit

from pydantic import AfterValidator, Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

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


# In these addresses the part before the @ is a container, not a user.
CONTAINER_SCHEMES = {"az", "abfs", "abfss", "adl"}


def staging_at(place: str) -> str:
    """The staging location in a form valid in every process: an absolute path, or an fsspec address.

    Raises:
        UsageError: if it contains credentials.
    """
    if "://" not in place:
        return str(Path(place).expanduser().absolute())
    parts = urlsplit(place)
    if parts.password is not None or (parts.username is not None and parts.scheme not in CONTAINER_SCHEMES):
        # The address is not repeated: it holds a secret.
        raise UsageError(
            "EMBAUDIT_STAGING contains credentials, and the locations of staged files are shown in output and in "
            "Prefect's UI.",
            next_step="Remove them: fsspec's packages read credentials from the environment, a profile or the "
            "machine's role (for s3://: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE).",
        )
    return str(Path(parts.path).absolute()) if parts.scheme in ("file", "local") else place.rstrip("/")


class Settings(BaseSettings):
    """Locations and limits of this machine; ``embaudit.measures.listed`` says what to compute."""

    model_config = SettingsConfigDict(env_prefix="EMBAUDIT_", frozen=True)

    def __init__(self, **values: Any) -> None:
        """Read the environment.

        Raises:
            UsageError: if a variable is invalid.
        """
        try:
            super().__init__(**values)
        except ValidationError as error:
            first = error.errors()[0]
            name = "EMBAUDIT_" + "_".join(str(part) for part in first["loc"]).upper()
            raise UsageError(f"{name} is invalid: {first['msg']}.", next_step=f"Change or unset {name}.") from error

    home: Path = Field(default=Path(".embaudit"), description="folder of the warehouse, staged results and reports")
    warehouse: str | Path | None = Field(
        default=None, description="DuckDB file or DuckLake address; default HOME/warehouse.duckdb"
    )
    snapshot: Path | None = Field(
        default=None, description="path of a read-only copy of the warehouse, refreshed whenever an audit is published"
    )
    snapshot_bulk: bool = Field(default=True, description="whether that copy includes the bulk tables (socm_pair)")
    report_url: str | None = Field(
        default=None, description="URL where HOME/reports is served; without it, the Prefect UI names the file"
    )
    staging: Annotated[str, AfterValidator(staging_at)] = Field(
        default_factory=lambda settings: str(Path(settings["home"]) / "staging"),
        validate_default=True,
        description="staged results: a folder, or an address such as s3://bucket/prefix; default HOME/staging",
    )
    runner: Literal["process", "dask"] = Field(
        default="process",
        description="what computes shards (or encodes an index): local processes or a Dask cluster",
    )
    runner_address: str | None = Field(
        default=None,
        description="address of a running Dask scheduler; without it, EMBAUDIT_WORKERS local workers are started",
    )
    watch_list: Path | None = Field(default=None, description="watch list of `embaudit watch`; default HOME/watch.toml")
    problems: Literal["fail", "mark"] = Field(
        default="fail",
        description="how a run ends that finds a problem: failed (red in Prefect's UI, and its exit code says so), "
        "or completed, marked with the problem's name; failed audits and gates set to fail are red all the same",
    )
    keep: bool = Field(
        default=False,
        description="whether what is asked at a terminal (check, vectors, why …) keeps its answer in the "
        "warehouse, as `--keep` does",
    )
    lock_wait_seconds: float = Field(
        default=60.0, ge=0, description="how long to wait while another process has the warehouse open"
    )
    pairs_per_shard: int = Field(default=500_000, ge=1, description="SOCM pairs in one staged file")
    workers: int = Field(
        default=1,
        ge=1,
        description="number of processes that compute shards (or encode an index) in parallel, sharing the cores",
    )
    gpu_limit: str | None = Field(
        default=None, description="Prefect concurrency limit that a measure holds while it uses a GPU"
    )
    tokens_per_shard: int = Field(default=4_096, ge=1, description="scanned tokens in one staged file")

    @property
    def warehouse_path(self) -> Warehouse:
        return warehouse_at(self.warehouse or self.home / "warehouse.duckdb")

    @property
    def reports(self) -> Path:
        """The folder of HTML pages that ``embaudit report`` writes."""
        return (self.home / "reports").expanduser().absolute()

    def report_link(self, audit_id: str) -> str | None:
        """The link to an audit's page, where the pages are served: a browser follows none to a file."""
        return None if self.report_url is None else f"{self.report_url.rstrip('/')}/{audit_id}.html"

    @property
    def watch_list_path(self) -> Path:
        return (self.watch_list or self.home / "watch.toml").expanduser().absolute()
