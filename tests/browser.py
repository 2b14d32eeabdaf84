"""Headless Chromium, asked over its own protocol: what a page says on its console, loads, and shows at a width."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from websockets.sync.client import ClientConnection, connect

# Texts that leave their picture, by more than rounding; and elements that no scrolling box keeps in the window.
CUT_OFF = """
[...document.querySelectorAll("svg")].flatMap(svg => {
  const box = svg.getBoundingClientRect();
  return [...svg.querySelectorAll("text")].filter(text => {
    const at = text.getBoundingClientRect();
    return at.left < box.left - 1 || at.right > box.right + 1 || at.top < box.top - 1 || at.bottom > box.bottom + 1;
  }).map(text => text.textContent);
})
"""
# The words whose colour stands out least from the paper behind them, as WCAG 2 counts contrast.
FAINTEST = """
(() => {
  const channels = colour => colour.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(one => one / 255)
    .map(one => one <= .03928 ? one / 12.92 : ((one + .055) / 1.055) ** 2.4)
    .reduce((sum, one, place) => sum + one * [.2126, .7152, .0722][place], 0);
  const behind = at => {
    for (; at; at = at.parentElement) {
      const paper = channels(getComputedStyle(at).backgroundColor);
      if (paper.length === 3 || paper[3] > 0) return paper;
    }
    return [255, 255, 255];
  };
  const found = [...document.querySelectorAll("body *")]
    .filter(one => [...one.childNodes].some(node => node.nodeType === 3 && node.textContent.trim()))
    .filter(one => one.getClientRects().length && !["STYLE", "TITLE"].includes(one.tagName))
    .map(one => {
      const style = getComputedStyle(one);
      const both = [light(channels(one.closest("svg") ? style.fill : style.color)), light(behind(one))].sort();
      return [(Math.max(...both) + .05) / (Math.min(...both) + .05), one.textContent.trim().slice(0, 80)];
    });
  return found.sort((a, b) => a[0] - b[0])[0];
})()
"""
LINKS = "[...document.querySelectorAll('a')].map(one => one.getAttribute('href'))"
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


class Tab:
    """One tab; events that come while an answer is waited for are kept."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self._asked = 0
        self.events: list[dict[str, Any]] = []
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **parameters: Any) -> Any:
        self._asked += 1
        self._connection.send(json.dumps({"id": self._asked, "method": method, "params": parameters}))
        while (message := self._next()).get("id") != self._asked:
            self.events.append(message)
        assert "error" not in message, message
        return message["result"]

    def open(self, url: str, width: int, theme: str) -> None:
        """Load a page anew, and forget what earlier ones said."""
        self.events.clear()
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=1000, deviceScaleFactor=1, mobile=False)
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])
        self.ask("Page.navigate", url=url)
        while not self.said("Page.loadEventFired"):
            self.events.append(self._next())

    def said(self, *methods: str) -> list[dict[str, Any]]:
        return [event["params"] for event in self.events if event.get("method") in methods]

    def value(self, expression: str) -> Any:
        return self.ask("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def picture(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.ask("Page.captureScreenshot")["data"]))

    def _next(self) -> dict[str, Any]:
        return json.loads(self._connection.recv(timeout=60))


@contextmanager
def new_tab(folder: Path) -> Iterator[Tab]:
    """A browser of its own with one tab; both are gone afterwards."""
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("needs chromium, which is not here")
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}"]
    command = [program, *options, "--remote-debugging-port=0", "about:blank"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as browser:
        try:
            assert browser.stderr
            said = next(line for line in browser.stderr if line.startswith("DevTools listening on "))
            port = said.split(":")[-1].split("/")[0]
            with urlopen(f"http://127.0.0.1:{port}/json") as answer:
                page = next(one for one in json.load(answer) if one["type"] == "page")
            with connect(page["webSocketDebuggerUrl"], max_size=None) as connection:
                yield Tab(connection)
        finally:
            browser.terminate()
