"""What gives vectors of texts: an *embedding function*, whoever holds it.

``function`` is the noun. Each carrier is a file: a ``checkpoint`` (folder, hub, packaged), one in another ``backend``,
an ``endpoint`` behind an HTTP API; ``as_stored`` wraps any of them. ``opened`` finds out which one a name stands for.
"""
