"""A store's own search beside exact search over the vectors that it holds (``embaudit search``)."""
