"""Learning from encounters: experiences from finished runs, and the study that shows whether they help."""
