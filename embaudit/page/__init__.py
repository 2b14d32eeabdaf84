"""An audit's page: one model, and a renderer each for the terminal, HTML and Markdown.

``facts`` reads the warehouse, ``audit`` makes a ``Page`` of the facts (each measure its own section, in
``embaudit/measures/NAME/page.py``), and the renderers lay out whatever sections, tables, charts and findings they are
given: they know no measure and no column.
"""
