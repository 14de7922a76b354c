"""How memory fades and firms: promotion, decay, supersession, merging."""
