"""The card as a page that people like to read: one file, no script, nothing fetched."""
