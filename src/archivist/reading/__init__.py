"""How a run is understood: commands, failures, signatures, remedies. Pure."""
