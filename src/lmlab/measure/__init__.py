"""Honest measurement: bits per byte with interval and certificate."""
