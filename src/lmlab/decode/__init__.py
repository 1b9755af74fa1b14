"""Text from a model: sampling, greedy decoding, beam search and exhaustive search, on `begin` and `advance` alone."""

from lmlab.decode.generate import Stream, generate, generate_many, search_each, stream
from lmlab.decode.options import IN_VERBS, Options, as_verbs_call_them
from lmlab.decode.result import Generated
from lmlab.decode.writing_precision import writing_in

__all__ = [
    "IN_VERBS", "Generated", "Options", "Stream", "as_verbs_call_them", "generate", "generate_many", "search_each", "stream",
    "writing_in",
]  # fmt: skip
