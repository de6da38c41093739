"""The simulator's audit: what patient and laboratory said, held against the chart.

A pure function of records and cases. It knows nothing of models: a reply is text, whoever wrote it.
"""
