"""Many encounters: what to play, in which order, written down so that nothing is lost."""
