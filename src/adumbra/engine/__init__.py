"""Where a statistic runs: fold and map blocks."""
