"""A page's HTML as a browser would take it apart."""

from __future__ import annotations

from html.parser import HTMLParser


class Page(HTMLParser):
    """Tags with their attributes, and the text between them."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text.append(data.strip())

    @property
    def words(self) -> str:
        return " ".join(part for part in self.text if part)
