"""A trained model opened on a text: its surprise token by token, and what it looked at, kept and would have said instead."""
