"""lmlab: a laboratory for language models."""

__version__ = "0.1.0"
