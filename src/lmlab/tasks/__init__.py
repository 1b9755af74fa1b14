"""The other tasks neural language models are made for, a package each, registered in `lmlab.models.registry`."""
