"""Planning beside the dialogue: a weighted differential, scored by us, turned into notes or an early finish."""
