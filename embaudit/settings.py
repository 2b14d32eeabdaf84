"""Where things are: the ``EMBAUDIT_*`` environment, read once and passed on as one object."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class Settings(BaseSettings):
    """Places and limits of this machine; what to compute is ``embaudit.profile``."""

    model_config = SettingsConfigDict(env_prefix="EMBAUDIT_", frozen=True)

    home: Path = Field(default=Path(".embaudit"), description="warehouse, staged results and caches")
    warehouse: Path | None = Field(default=None, description="DuckDB file; default HOME/warehouse.duckdb")
    lock_wait_seconds: float = Field(
        default=60.0, ge=0, description="how long to wait for a warehouse that another process has open"
    )
    pairs_per_shard: int = Field(default=500_000, ge=1, description="SOCM pairs in one staged file")
    workers: int = Field(
        default=1, ge=1, description="processes that compute shards at the same time, each with its share of the cores"
    )
    tokens_per_shard: int = Field(default=4_096, ge=1, description="tokens of a scan in one staged file")

    @property
    def warehouse_path(self) -> Path:
        return (self.warehouse or self.home / "warehouse.duckdb").expanduser().absolute()

    @property
    def staging(self) -> Path:
        return (self.home / "staging").expanduser().absolute()

    @property
    def cache(self) -> Path:
        """Prefect's records of finished tasks; deleting it recomputes, and loses nothing that is published."""
        return (self.home / "cache").expanduser().absolute()
