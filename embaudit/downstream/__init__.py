"""What embeddings are used for, as tasks with a score: retrieval, classification, clustering, similarity of sentences.

``material`` picks a corpus's texts by what they say, ``split`` halves them; a ``task`` turns vectors into an outcome
for each item and outcomes into a score. Nothing here runs a model.
"""
