"""One encounter: doctor, patient, laboratory and judge, and the prompts they work with."""
