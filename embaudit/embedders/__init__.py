"""What gives vectors of texts: an *embedding function*, whoever holds it.

``function`` is the noun. Each carrier is a file or a folder: a ``checkpoint`` (folder, hub, packaged), one in another
``backend``, an ``endpoint`` behind an HTTP API, a Python ``object``, a ``pipeline`` that sentence-transformers runs;
``as_stored`` wraps any of them. ``parts`` asks for many texts in parts; ``opened`` finds out what a name stands for.
"""
