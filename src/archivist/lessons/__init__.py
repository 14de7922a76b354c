"""What was learnt: candidates, duplicates, standing, quarantine, decay."""
