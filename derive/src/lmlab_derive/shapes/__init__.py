"""Shapes in symbols: what the axes of every expression are, and what a claim stands on."""
