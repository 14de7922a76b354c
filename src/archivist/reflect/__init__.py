"""How it learns: what failed, why, and what would have helped."""
