"""Documents in chunks: old stream entries, watched folders, items of other stores."""
