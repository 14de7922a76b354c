"""Read runs with a language model: how a run looks to it, what it is asked, what of its answer holds."""
