"""Which lmlab-derive this is; lmlab has the same version."""

__version__ = "0.1.0"
