"""What is declared about a table: columns, bounds, rules; public facts only."""
