"""Verbs of Python that need several rooms: one file each."""
