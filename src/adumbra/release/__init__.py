"""What leaves: the card, the folder it stands in, and the `Release` that a reader opens."""
