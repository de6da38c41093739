"""The sections of the page, each a function of the view that returns None if the records cannot fill it."""
