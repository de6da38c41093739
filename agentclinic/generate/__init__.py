"""From raw sources to validated cases; knows nothing of encounters."""
