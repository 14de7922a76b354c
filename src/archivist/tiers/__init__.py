"""The layers and tiers of memory: the rules by which knowledge, core, stream, archive and scratch change."""
