"""Who made a release: SSH keys and signatures, whom to trust, and the tree over a ledger's log."""
