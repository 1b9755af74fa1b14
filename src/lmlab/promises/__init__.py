"""The contract: what every language model promises, tried on small models. `lmlab contract MODEL` runs it on any."""

from lmlab.promises.suite import Finding, run

__all__ = ["Finding", "run"]
