"""Sums of indexed products, in which identities are proved for all sizes and values at once."""
