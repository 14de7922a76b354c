"""What agents logged on purpose, and the insights drawn from it."""
