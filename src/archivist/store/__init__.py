"""Where records are kept: one protocol, an engine behind it."""
