"""Python functions that combine several packages: one file per function."""
