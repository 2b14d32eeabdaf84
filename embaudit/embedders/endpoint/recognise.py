"""Finds out which API an address speaks, what it serves, and how much it takes at once."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, urlsplit, urlunsplit

from embaudit.checkpoint.prompts import NO_PROMPTS, Prompts
from embaudit.embedders.endpoint.client import MOST_TEXTS, Endpoint, EndpointError
from embaudit.embedders.endpoint.dialects import (
    AZURE,
    DIALECTS,
    OLLAMA,
    OPENAI,
    OPENAI_WITHOUT_PREFIX,
    TEI,
    Dialect,
    hosted_at,
)
from embaudit.words.errors import UsageError
from embaudit.words.masking import without_credentials

# Of Azure's API, where the address names none.
AZURE_VERSION = "2024-10-21"
# What follows the server's address in what people paste, longest first.
PASTED = (
    ("/v1/embeddings", OPENAI),
    ("/embeddings", OPENAI_WITHOUT_PREFIX),
    ("/v1", OPENAI),
    ("/embed", TEI),
    ("/api/embed", OLLAMA),
    ("/api", OLLAMA),
)


def is_address(name: str) -> bool:
    """Whether a name is an endpoint's address rather than a checkpoint's."""
    return name.startswith(("http://", "https://"))


def is_loopback(address: str) -> bool:
    """Whether texts that are sent there stay on this machine."""
    host = urlsplit(address).hostname or ""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def open_endpoint(
    address: str,
    api: str | None = None,
    model: str | None = None,
    prompts: Prompts = NO_PROMPTS,
    **more: Any,
) -> Endpoint:
    """An endpoint at an address, its API and model recognised unless named.

    Args:
        more: as ``Endpoint`` has it: dimensions, fields, per_minute.

    Raises:
        UsageError: if the address is none, or the API or the model must be named.
        EndpointError: if nothing answers.
    """
    parts = urlsplit(address)
    if not parts.hostname:
        raise UsageError(
            f"{without_credentials(address)} is no address.", next_step="For example: http://localhost:8080"
        )
    path = parts.path.rstrip("/")
    hosted = DIALECTS[api] if api is not None else hosted_at(parts.hostname)
    pasted = next(
        ((end, dialect) for end, dialect in sorted(PASTED, key=lambda one: -len(one[0])) if path.endswith(end)), None
    )
    dialect = hosted or (pasted[1] if pasted is not None else None)
    end = pasted[0] if pasted is not None else ""
    if dialect is AZURE:
        dialect, path, model = _deployment(path.removesuffix("/embeddings"), parts.query, model)
        end = ""
    elif hosted is not None and (own := re.search(_pasted_path(hosted), path)):
        # The whole address as its documentation has it, the model's name in it.
        end, model = own[0], model or own.groupdict().get("model")
    base = urlunsplit((parts.scheme, parts.netloc, path.removesuffix(end), "", ""))
    endpoint = Endpoint(base, dialect or OPENAI, model, prompts=prompts, **more)
    endpoint.dialect = dialect or _recognised(endpoint)
    if model is None:
        endpoint.model = _only_model(endpoint)
    endpoint.most_texts = min(MOST_TEXTS, endpoint.dialect.most_texts)
    if endpoint.dialect is TEI:
        endpoint.most_texts = _most_texts(endpoint.get("/info"))
    return endpoint


def _pasted_path(dialect: Dialect) -> str:
    """A pattern of the end of what people paste."""
    path, _, _ = dialect.path.partition("?")
    escaped = re.escape(path).replace(re.escape("{model}"), r"(?P<model>[^/:]+)")
    # Or only as far as the version.
    return rf"(?:{escaped}|/v\d\w*)$"


def _deployment(path: str, query: str, model: str | None) -> tuple[Dialect, str, str]:
    """Azure's dialect, path and model, of an address with a deployment, or with the name of one."""
    version = parse_qs(query).get("api-version", [AZURE_VERSION])[0]
    found = re.search("/openai/deployments/([^/]+)$", path)
    name = found[1] if found else model
    if name is None:
        raise UsageError(
            "Azure's address names no deployment.",
            next_step="Give the whole address (https://NAME.openai.azure.com/openai/deployments/DEPLOYMENT), or "
            "--model DEPLOYMENT.",
        )
    path = path if found else f"{path.removesuffix('/openai')}/openai/deployments/{name}"
    return replace(AZURE, path=AZURE.path.format(version=version)), path, name


def _recognised(endpoint: Endpoint) -> Dialect:
    info = endpoint.get("/info")
    if isinstance(info, dict) and "max_client_batch_size" in info:
        return TEI
    # ollama speaks OpenAI's API, too; its own gives the model's vectors as they are.
    for dialect in (OLLAMA, OPENAI, OPENAI_WITHOUT_PREFIX):
        if _models(endpoint, dialect) is not None:
            return dialect
    if endpoint.refused is not None:
        endpoint.require_allowed(endpoint.refused)
    if endpoint.sent_elsewhere is not None:
        raise endpoint.elsewhere(endpoint.sent_elsewhere, OPENAI.models[0] if OPENAI.models else "")
    raise EndpointError(
        f"{endpoint.name} answers, but not as OpenAI's API, text-embeddings-inference or ollama do.",
        next_step=f"Name the API: --api {', '.join(DIALECTS)}.",
    )


def _only_model(endpoint: Endpoint) -> str | None:
    """The one model that it serves; None if it does not list any and need not be told."""
    names = _models(endpoint, endpoint.dialect) or []
    if len(names) == 1:
        return names[0]
    if names or endpoint.dialect.needs_model:
        served = f"serves {', '.join(names[:8])}" if names else "does not list its models"
        raise UsageError(f"{endpoint.name} {served}.", next_step="Name one: --model NAME.")
    return None


def _models(endpoint: Endpoint, dialect: Dialect) -> list[str] | None:
    """The names of the models that it lists as an API does; None if it lists none so."""
    if dialect.models is None:
        return None
    path, listed, name = dialect.models
    answer = endpoint.get(path)
    entries = answer.get(listed) if isinstance(answer, dict) else None
    if not isinstance(entries, list):
        return None
    return [str(entry[name]) for entry in entries if isinstance(entry, dict) and name in entry]


def _most_texts(info: Any) -> int:
    most = info.get("max_client_batch_size") if isinstance(info, dict) else None
    return min(most, MOST_TEXTS) if isinstance(most, int) and most > 0 else MOST_TEXTS
