"""One agent's private scratch."""
