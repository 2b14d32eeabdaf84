"""An audit as a page: the facts that every page shows, and the one in HTML.

``facts`` reads them from the warehouse (the terminal's page shows them too), ``page`` makes HTML of them, ``write``
puts it in its place.
"""
