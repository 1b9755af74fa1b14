"""Text to the typed tree: tokens, expressions, statements, and the names that each statement can see."""
