"""The model of RON-Gauss, from released numbers."""
