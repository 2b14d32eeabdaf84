"""The first minute: is this checkpoint broken, and does it do what an embedding is for?

``check`` runs the parts, ``verdict`` sums them up in one line, ``shown`` prints them.
"""
