"""Files: open, write whole, lock, read lines."""
