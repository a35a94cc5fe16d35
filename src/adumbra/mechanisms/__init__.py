"""The published systems, one module each, with the calibration that is right."""
