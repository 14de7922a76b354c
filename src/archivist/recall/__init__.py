"""How memory finds: words, queries, scores. Pure but for the index."""
