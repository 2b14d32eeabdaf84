"""Two functions, or a function and vectors, held beside each other: a folder each, with its findings and its page."""
