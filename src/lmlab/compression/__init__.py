"""Cash in the bits: a text as small as a model claims it is, and back, byte for byte."""

from lmlab.compression.proof import Proof, proof
from lmlab.compression.text_codec import claimed_bits, compress, compressed_bits, decompress

__all__ = ["Proof", "claimed_bits", "compress", "compressed_bits", "decompress", "proof"]
