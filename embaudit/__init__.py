"""Audit text-embedding checkpoints: sticky tokens, second-order collapse, length collapse."""


def __getattr__(name: str) -> str:
    """``__version__``, when it is asked for: importing ``importlib.metadata`` takes longer than ``embaudit --help``."""
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib.metadata import version

    return version("embaudit")
