"""How a run comes in: one adapter a format, redaction, and the stripping of our own briefs."""
