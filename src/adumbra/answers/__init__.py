"""Answers with error bars, from released numbers alone."""
