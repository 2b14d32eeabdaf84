"""What came into an index since it was last looked at, by hashes of its rows, and what of earlier looks is open."""
