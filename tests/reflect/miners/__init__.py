"""Each miner on small scripted runs."""
