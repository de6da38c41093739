"""Planning during an encounter: a weighted differential, scored by us, becomes notes or an early finish."""
