"""A/B of two builds by turns on one machine: sides, runs, pairs and their decision."""
