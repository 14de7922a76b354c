"""Doors: each parses, calls the bank, and renders."""
