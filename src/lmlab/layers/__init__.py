"""Parts that several models share."""
