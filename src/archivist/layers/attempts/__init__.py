"""What was tried for a task."""
