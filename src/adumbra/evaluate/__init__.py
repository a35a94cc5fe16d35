"""Utility against private data and as-published baselines: NOT FOR RELEASE."""
