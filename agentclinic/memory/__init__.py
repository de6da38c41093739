"""Memory: experiences from earlier cases, kept in a file and offered to a doctor where they fit."""
