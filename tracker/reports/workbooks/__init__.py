"""Workbooks that are more than a summary and a sheet per table: a module for each, by the word of the result."""
