"""Audit text-embedding checkpoints: sticky tokens, second-order collapse, length collapse."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from embaudit.api.ask import check as check
    from embaudit.api.ask import fingerprint as fingerprint
    from embaudit.api.ask import parity as parity
    from embaudit.api.ask import passport as passport
    from embaudit.api.ask import search as search
    from embaudit.api.ask import switch as switch
    from embaudit.api.ask import vectors as vectors
    from embaudit.api.ask import verify as verify
    from embaudit.api.ask import why as why
    from embaudit.api.audit import AuditCallback as AuditCallback
    from embaudit.api.audit import audit as audit
    from embaudit.api.reading import Audit as Audit
    from embaudit.api.reading import WarehouseReader as WarehouseReader
    from embaudit.api.reading import open_warehouse as open  # noqa: F401  (not in __all__)

    __version__: str

# Imported on first use: every command imports this package, and ``embaudit --help`` must answer in 0.1 s.
_PLACES = {
    "Audit": ("reading", "Audit"),
    "AuditCallback": ("audit", "AuditCallback"),
    "WarehouseReader": ("reading", "WarehouseReader"),
    "audit": ("audit", "audit"),
    "check": ("ask", "check"),
    "fingerprint": ("ask", "fingerprint"),
    "open": ("reading", "open_warehouse"),
    "parity": ("ask", "parity"),
    "passport": ("ask", "passport"),
    "search": ("ask", "search"),
    "switch": ("ask", "switch"),
    "vectors": ("ask", "vectors"),
    "verify": ("ask", "verify"),
    "why": ("ask", "why"),
}
# Without ``open``: ``from embaudit import *`` must not shadow the built-in.
__all__ = [
    "Audit",
    "AuditCallback",
    "WarehouseReader",
    "__version__",
    "audit",
    "check",
    "fingerprint",
    "parity",
    "passport",
    "search",
    "switch",
    "vectors",
    "verify",
    "why",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("embaudit")
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module, attribute = _PLACES[name]
    return getattr(import_module(f"embaudit.api.{module}"), attribute)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_PLACES})
