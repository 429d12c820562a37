"""Findings: the versions of a track in order, what changed in them, and what became of it."""
