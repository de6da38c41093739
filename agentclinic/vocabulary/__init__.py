"""One vocabulary for all: diseases, findings, tests, their names and how likely they are together."""
