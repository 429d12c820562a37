"""What is stored, declared once; all that follows from it is derived."""
