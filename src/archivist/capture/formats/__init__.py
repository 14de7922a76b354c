"""The formats of agents' logs, one adapter a file."""
