"""The parts of `outside.py` and `peers.py`: tables, judges, environments of the peers, pages."""
