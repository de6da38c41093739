"""Pages in the browser: the viewer of runs and the consulting room, served to this machine or exported as files."""
