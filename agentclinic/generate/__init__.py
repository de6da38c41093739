"""From raw sources to validated cases; independent of encounters."""
