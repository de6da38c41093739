"""Cases: what they are, where they come from, and how they are read."""
