"""week2: a weekly assignment on counting parameters and reading perplexities."""
