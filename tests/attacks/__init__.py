"""Attacks on the memory, each through every door."""
