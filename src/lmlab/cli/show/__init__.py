"""Results as a terminal shows them: tables, progress, colours. Nothing here computes."""
