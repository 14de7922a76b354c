"""Where records are stored: one protocol, and an engine behind it."""
