"""Arithmetic on released numbers; nothing here can reach a private row."""
