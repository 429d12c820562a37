"""The document of each result: a module per result, with a function `document(result, look)`."""
