"""Severe tokens in other people's texts: the list of them, and how densely texts carry them."""
