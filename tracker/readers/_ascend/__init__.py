"""What the readers of Ascend profiles share: metadata, shapes, spellings of columns, tables and communication files."""
