"""All pages of the site, for the command that serves them."""

from archivist.edges.web import lessons, memory, overview, runs
from archivist.edges.web.rendering import make_pages

__all__ = ["lessons", "make_pages", "memory", "overview", "runs"]
