"""An HTTP server in the protocol of OpenAI's completions, for every kind of language model."""
