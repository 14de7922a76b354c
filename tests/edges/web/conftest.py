"""A real browser for the tests of pages, and the sites that they look at."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.edges.http_server import Served, serving
from tests.edges.web.sites import fill_small

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_MISSING = "the tests of pages need {}: `make test` installs it as root, else: {}"
_WIDTHS = {"desk": 1280, "phone": 390}


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Start the system's browser without a window; what is missing is an error, never a skip."""
    try:
        from playwright.sync_api import sync_playwright
    except ModuleNotFoundError:
        pytest.fail(_MISSING.format("playwright", "pip install playwright"))
    path = next((found for name in _BROWSERS if (found := shutil.which(name))), None)
    if path is None:
        pytest.fail(_MISSING.format("chromium", "apt-get install chromium"))
    with sync_playwright() as playwright:
        # Containers run as root, where its sandbox does not start.
        made = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        yield made
        made.close()


@pytest.fixture(scope="session")
def axe() -> str:
    """Return the script of axe-core, which finds what some people could not use."""
    place = os.environ.get("ARCHIVIST_AXE") or f"{sys.prefix}/axe/node_modules/axe-core/axe.min.js"
    file = Path(place)
    if not file.exists():
        pytest.fail(_MISSING.format("axe-core", f"npm install --prefix {sys.prefix}/axe axe-core@4"))
    return file.read_text("utf-8")


@dataclass
class Visitor:
    """A browser's window at a site, and what went wrong in it."""

    served: Served
    context: BrowserContext
    page: Page
    problems: list[str] = field(default_factory=list)

    def go(self, path: str) -> Page:
        """Open a page of the site."""
        answer = self.page.goto(self.served.url + path)
        assert answer is not None
        assert answer.ok, f"{path}: {answer.status}"
        return self.page


def visit(
    browser: Browser, served: Served, *, width: str = "desk", sign_in: bool = True, **how: Any
) -> Visitor:
    """Open a window that notes console errors, failed requests, and requests to other sites."""
    context = browser.new_context(viewport={"width": _WIDTHS[width], "height": 900}, **how)
    page = context.new_page()
    visitor = Visitor(served, context, page)
    page.on("pageerror", lambda error: visitor.problems.append(str(error)))
    page.on(
        "console",
        lambda said: visitor.problems.append(said.text) if said.type in ("error", "warning") else None,
    )
    page.on(
        "request",
        lambda asked: None if asked.url.startswith(served.url) else visitor.problems.append(asked.url),
    )
    page.set_default_timeout(10_000)
    if sign_in:
        page.goto(served.link)
    return visitor


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Serve a small bank that has something for every page; what a test changes stays changed."""
    folder = fill_small(tmp_path_factory.mktemp("small") / "toolshed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ARCHIVIST_ACTOR", "human:ada")
        with serving(folder, "--quiet") as served:
            yield served


@pytest.fixture
def visitor(browser: Browser, small: Served) -> Iterator[Visitor]:
    """Open a window at the small site; at the end nothing may have gone wrong in it."""
    made = visit(browser, small)
    yield made
    made.context.close()
    assert made.problems == []
