"""Several judges of one run: how far they agree, their majority, and what their errors do to the accuracy."""
