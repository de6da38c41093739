"""Audit the simulator: compare the replies of patient and laboratory with the chart.

A function of records and cases only: a reply is text, whether a model or a person wrote it.
"""
