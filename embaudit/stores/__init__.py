"""Where vectors are kept: files, folders, databases and servers, read in batches and never written to.

``store`` is the noun: what is measured of a place with vectors. A ``StoreKind`` (``table``) is one way of keeping them:
how it is recognised in a ``StorePlace``, and how it becomes a ``StoreTable`` of columns. Each has a file of its own;
other packages bring theirs (``kinds``). ``columns`` finds the vectors, texts and ids of a table, ``decode`` turns what
is stored into arrays, ``template`` says what was embedded of a row, and ``opened`` puts these together.
"""
