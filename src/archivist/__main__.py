"""`python -m archivist` is the command line."""

from __future__ import annotations

from archivist.edges.cli.main import main

if __name__ == "__main__":
    main()
