"""Settings of this machine: the ``EMBAUDIT_*`` environment variables as one object."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from embaudit.system.address import Warehouse, warehouse_at
from embaudit.words.errors import UsageError

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


def _default_staging(settings: dict[str, Any]) -> str:
    return str(Path(settings["home"]) / "staging")


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
        default_factory=_default_staging,
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
