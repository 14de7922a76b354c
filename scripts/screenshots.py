"""Take the screenshots of the documentation, from a bank of generated runs: python -m scripts.screenshots."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright
from tests.edges.http_server import serving
from tests.edges.web.sites import fill_small

FOLDER = Path(__file__).parent.parent / "docs" / "img"
PAGES = {
    "overview": "/overview",
    "lessons": "/lessons?q=tests",
    "lesson": "/lessons/m-005",
    "runs": "/runs",
    "run": "/runs/session-002",
    "tools": "/runs/flow",
    "live": "/live",
    "brief": "/brief?task=clean+the+build+folder&repo=toolshed",
    "audit": "/audit?days=7",
    "ledger": "/ledger?verify=1",
    "knowledge": "/knowledge",
    "tasks": "/tasks",
    "task": "/tasks/Make%20the%20checks%20pass",
    "checks": "/checks",
    "core": "/core",
    "proposals": "/proposals",
    "workspace": "/workspace",
}
# Width, colour scheme and the end of the file's name; every page in the first, some in the others.
LOOKS = ((1280, "light", ""), (1280, "dark", "-dark"), (390, "light", "-phone"))
SOME = ("overview", "lesson", "run")


def main() -> None:
    """Fill a bank, serve it, and write one picture a page."""
    with tempfile.TemporaryDirectory() as home:
        os.environ |= {"HOME": home, "ARCHIVIST_HOME": f"{home}/.archivist", "ARCHIVIST_ACTOR": "human:ada"}
        folder = fill_small(Path(home) / "toolshed")
        browser_path = shutil.which("chromium") or shutil.which("google-chrome")
        with serving(folder, "--quiet") as served, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
            for width, scheme, end in LOOKS:
                context = browser.new_context(viewport={"width": width, "height": 860}, color_scheme=scheme)  # type: ignore[arg-type]
                page = context.new_page()
                page.goto(served.link)
                for name in PAGES if not end else SOME:
                    page.goto(served.url + PAGES[name])
                    # What the overview loads later is there, too.
                    page.wait_for_timeout(1_000)
                    page.screenshot(path=FOLDER / f"{name}{end}.png")
                context.close()


if __name__ == "__main__":
    main()
