"""Solvable worlds: small clinics whose joint distribution is given, so that the best play is known exactly."""
