"""Hooks: the events of an agent's client, answered in its own form."""
