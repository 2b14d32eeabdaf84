"""Sentences of a tiny vocabulary, of several lengths."""

SENTENCES = (
    "the river town was found near the old church",
    "a small bird",
    "the law court of the state",
    "water",
    "the music of the film was new and long",
    "iron and gold were traded at the market by the sea for many years before the war",
    "a great king",
    "rain snow and ice",
)
