"""Text in: corpora, tokenizers, spelling, token streams, word vectors. Nothing here needs torch."""
