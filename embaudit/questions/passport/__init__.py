"""A checkpoint's passport: a small file of texts and their vectors, by which anything can be told to be its function.

``passport`` is the format, ``canaries`` chooses the texts, ``make`` encodes them, ``file`` reads and writes, ``verify``
holds an endpoint or a checkpoint against it, and ``pattern`` says what is probable if some texts differ and others do
not. Reading one and verifying an endpoint import no torch.
"""
