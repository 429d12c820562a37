"""Reads profiles into a database and compares versions."""
