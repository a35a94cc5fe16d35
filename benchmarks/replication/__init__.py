"""The experiments of the five papers, cell by cell. NOT FOR RELEASE: compared with private rows."""
