"""The model of the moments synthesizer, from released numbers."""
