"""The original's synchronous interface, scenario classes and file layout."""
