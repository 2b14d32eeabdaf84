"""Are two the same function? A checkpoint, and what serves it: another checkpoint, precision, backend or an endpoint.

``texts`` are what both are asked, ``compare`` says by kind of text how far their vectors are apart, and ``asking``
whether an endpoint's vector depends on how it is asked. ``readings`` and ``vectors`` are other ways to use the
checkpoint; ``explain`` searches them for the one that gives the other's vectors. ``parity`` runs all of it.
"""
