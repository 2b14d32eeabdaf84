"""Corpora: Wikipedia, MS MARCO, STS and labelled texts, from the hub, a local file or the embedded sample.

``load`` is the entry point, ``catalog`` lists the corpora, and ``draw`` has the result types.
"""
