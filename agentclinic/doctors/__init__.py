"""The four roles: their prompts, what they ask of a model, and how their replies are read."""
