"""Private rows: schemas, sources, encoding, bounds."""
