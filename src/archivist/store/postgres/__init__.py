"""The engine of a team: many banks in one PostgreSQL database."""

from importlib.util import find_spec

from archivist.errors import BankError

if find_spec("psycopg") is None:
    raise BankError("a bank on a server needs psycopg", hint="pip install 'archivist-memory[postgres]'")
