"""Workspace memory: markdown that people own, read well, checked, and written only in the documented form."""
