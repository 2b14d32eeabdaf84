"""A checkpoint beside the one that it was made from: what changed, by how much, what it gained and what it lost.

``change`` runs the parts: ``tensors`` and ``weights`` compare what is in memory, ``rows`` the input embeddings,
``tokens`` and ``declared`` how a text is read, ``vectors`` what comes out, ``gains`` what it is worth.
"""
