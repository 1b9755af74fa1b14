"""Decoding: text from any model, on `begin` and `advance` alone."""
