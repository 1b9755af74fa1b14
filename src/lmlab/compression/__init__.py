"""Cash in the bits: a text as small as a model claims it is, and back, byte for byte."""

from lmlab.compression.codec import claimed_bits, compress, compressed_bits, decompress
from lmlab.compression.proof import Proof, proof

__all__ = ["Proof", "claimed_bits", "compress", "compressed_bits", "decompress", "proof"]
