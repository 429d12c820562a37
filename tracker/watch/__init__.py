"""Watches folders."""
