"""A served model behind an HTTP API: what a request for vectors is, and how one asks with patience.

``dialects`` knows the APIs, ``client`` sends, waits and checks what comes back, ``recognise`` finds out which API an
address speaks. ``answers`` says how much may be read of an answer, and ``exchange`` reads no more.
"""
