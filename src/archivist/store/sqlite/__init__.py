"""The SQLite store: one file a bank."""
