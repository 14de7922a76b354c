"""The functions that agents call, their schemas and their answers."""
