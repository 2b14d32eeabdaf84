"""The site in Chromium: nothing from another machine, no page wider than its window, and a search that finds."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from browser import OVERFLOW, Tab, new_tab
from test_site import PAGES, build_site

pytestmark = pytest.mark.slow
# The index is read by a worker: the links of its answer, once it is there.
RESULTS = """
new Promise(done => {
  const look = () => {
    const links = [...document.querySelectorAll(".md-search-result__link")].map(one => one.getAttribute("href"));
    links.length ? done(links) : setTimeout(look, 50);
  };
  look();
})
"""


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder, _ = build_site(tmp_path_factory.mktemp("site"))
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    with new_tab(Path(tmp_path_factory.mktemp("browser"))) as opened:
        yield opened


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_a_page_fits_its_window_and_asks_nobody_else(address: str, tab: Tab, page: Path) -> None:
    for width, theme in ((390, "dark"), (1280, "light")):
        tab.open(f"{address}/{page.stem}.html", width, theme)
        assert tab.value(OVERFLOW) == 0, width
        asked = [event["request"]["url"] for event in tab.said("Network.requestWillBeSent")]
        assert [url for url in asked if not url.startswith((address, "data:"))] == []
        assert tab.said("Runtime.exceptionThrown") == []


def test_the_search_finds_a_page(address: str, tab: Tab) -> None:
    tab.open(f"{address}/index.html?q=homoglyphs", 1280, "light")
    answer = tab.ask("Runtime.evaluate", expression=RESULTS, awaitPromise=True, returnByValue=True)
    found = answer["result"]["value"]
    assert any("findings.html" in link or "methods.html" in link for link in found), found
