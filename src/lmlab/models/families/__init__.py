"""What several kinds of models have in common."""
