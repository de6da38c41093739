"""The results of encounters: actions, turns, records, and the run folder that holds them."""
