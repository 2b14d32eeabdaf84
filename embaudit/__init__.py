"""Audit text-embedding checkpoints: sticky tokens, second-order collapse, length collapse."""

from typing import TYPE_CHECKING, Any

from embaudit.questions.names import NAMES

if TYPE_CHECKING:
    from embaudit.api.ask import *  # noqa: F403
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
    "open": ("reading", "open_warehouse"),
    **{name: ("ask", name) for name in NAMES},
}
# Without ``open``: ``from embaudit import *`` must not shadow the built-in.
__all__ = [
    "Audit",
    "AuditCallback",
    "WarehouseReader",
    "__version__",
    "audit",
    *NAMES,
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
