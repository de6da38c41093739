"""The sections of the page, each a function of the view; a section nobody can fill is nothing."""
