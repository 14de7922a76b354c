"""Hooks: what an agent's client asks at the moments of a session, answered in its own dialect."""
