"""An audit's page: one model, with renderers for the terminal, HTML and Markdown.

``facts`` reads the warehouse, ``audit`` makes a ``Page`` from the facts (the sections of measures are in
``embaudit/measures/NAME/page.py``), and the renderers lay out sections, tables, charts and findings without knowing any
measure or column.
"""
