"""Taking severe tokens out of a checkpoint: rows of its input embeddings, and nothing else, become other rows."""
