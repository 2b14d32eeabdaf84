"""Remedies for severe tokens: replaced input embeddings, a tokenizer without them, transforms of the output space."""
