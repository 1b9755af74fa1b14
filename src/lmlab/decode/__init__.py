"""Text from a model: sampling, greedy decoding, beam search and exhaustive search, on `begin` and `advance` alone."""

from lmlab.decode.generate import Stream, generate, search_each, stream
from lmlab.decode.options import Options
from lmlab.decode.result import Generated

__all__ = ["Generated", "Options", "Stream", "generate", "search_each", "stream"]
