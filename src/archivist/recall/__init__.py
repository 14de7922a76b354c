"""How memories are found: words, queries and scores."""
