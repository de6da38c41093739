"""How to get a reply: endpoints, the builtin clinic, recordings, people."""
