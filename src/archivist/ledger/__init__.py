"""The history of every record, and undo."""
