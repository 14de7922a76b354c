"""What runs produced, with checksums."""
