"""What every kind of test shares: databases for the ledger (and a word on which of them ran)."""

pytest_plugins = ("support.ledger",)
