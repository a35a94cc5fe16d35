"""Bounded exact sums over rows, with their sensitivities and proofs."""
