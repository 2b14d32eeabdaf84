"""What helps against severe tokens: other rows of the input embeddings, a tokenizer without them, the output space."""
