"""Downstream tasks: retrieval, classification, clustering, semantic similarity.

``material`` samples texts of a corpus by content, ``split`` halves them; a ``task`` turns vectors into an outcome per
item, and outcomes into a score. Nothing here runs a model.
"""
