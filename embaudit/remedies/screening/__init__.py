"""Screening of texts for severe tokens: the list of tokens, and their density in each text."""
