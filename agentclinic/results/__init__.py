"""What came of an encounter: actions, turns, records, and the run folder they are kept in."""
