"""A served model whose files are not seen: what can be told from the vectors that it answers with.

``numbers`` asks for hard texts, ``limit`` finds where long ones are cut, ``quality`` scores pairs and queries, and
``served`` runs them.
"""
