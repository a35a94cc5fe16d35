"""Guarantees, conversion, calibration, noise, selection, ledger."""
