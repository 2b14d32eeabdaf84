"""Intervals: over texts, over units and clusters, of shares, of differences."""
