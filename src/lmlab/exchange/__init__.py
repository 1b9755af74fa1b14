"""Doors to other people's tools."""
