"""Diagnosis sessions: what a doctor learned and still doubts, step by step, in a file for each encounter."""
