"""A tokenizer's vocabulary: the category, reachability, origin and script of each entry."""
