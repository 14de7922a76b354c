"""What leaves and comes as files: exports, imports, the share folder, ATIF."""
