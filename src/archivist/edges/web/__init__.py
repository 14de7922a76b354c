"""The pages of a bank for a browser."""
