"""Erasure with a receipt, and retention."""
