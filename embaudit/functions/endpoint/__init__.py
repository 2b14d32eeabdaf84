"""A served model behind an HTTP API: what a request for vectors is, and how one asks with patience.

``dialects`` knows the APIs, ``client`` sends, waits and checks what comes back, ``recognise`` finds out which API an
address speaks.
"""
