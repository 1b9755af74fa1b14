"""assignment2: a homework on neural language models, perplexity, averaging classifiers and attention."""
