"""A real browser: the Chromium of this machine, and a page that records what a page must not do."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from attrs import define, field
from playwright.sync_api import Browser, Locator, Page, expect, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PATIENCE_MS = 90_000
_ARGUMENTS = (
    # Chromium refuses to run as root with its sandbox.
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
# Chromium logs this for every answer of 400 and above, which tests cause on purpose.
_REFUSED = "Failed to load resource: the server responded with a status of"

expect.set_options(timeout=PATIENCE_MS)


def find_chromium() -> str | None:
    """Return the path of a Chromium, None if there is none."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


@contextmanager
def chromium(executable: str) -> Iterator[Browser]:
    """Start a browser without a window and with a fresh profile."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=_ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


def queries(page: Page) -> Locator:
    """Return the list of queries; decisions also have links to queries."""
    return page.get_by_role("table", name="Streaming queries")


@define
class Watched:
    """A page, and its violations."""

    page: Page
    origin: str
    complaints: list[str] = field(factory=list)

    def watch(self) -> None:
        self.page.on("console", lambda said: self._said(said.type, said.text))
        self.page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        self.page.on("request", lambda request: self._asked(request.url))
        self.page.on("dialog", lambda dialog: self._opened(dialog))

    def _said(self, kind: str, text: str) -> None:
        if kind in ("error", "warning") and not text.startswith(_REFUSED):
            self.complaints.append(f"console: {text}")

    def _asked(self, url: str) -> None:
        if urlsplit(url).scheme != "data" and urlsplit(url).netloc != self.origin:
            self.complaints.append(f"a request leaves the origin: {url}")

    def _opened(self, dialog: Any) -> None:
        self.complaints.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def nodes(self) -> int:
        """Return the number of elements of the page."""
        return int(self.page.evaluate("document.querySelectorAll('*').length"))

    def picture(self, file: Path) -> None:
        """Take a picture of the visible part of the page."""
        file.parent.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=file)

    def fits(self) -> bool:
        """Return whether the page is no wider than the window, so that it does not scroll sideways."""
        return bool(self.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"))


@contextmanager
def watched(
    browser: Browser,
    url: str,
    width: int = 1280,
    height: int = 900,
    scheme: Literal["light", "dark"] = "light",
) -> Iterator[Watched]:
    """Open a page in a window of its own; at the end it must have no violations."""
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    context.set_default_timeout(PATIENCE_MS)
    try:
        found = Watched(context.new_page(), urlsplit(url).netloc)
        found.watch()
        found.page.goto(url)
        yield found
        assert found.complaints == []
    finally:
        context.close()
