"""Killed processes, damaged files, locks that do not lock."""
