"""The engine of a team: many banks in one PostgreSQL database."""
