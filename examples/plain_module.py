"""A language model of your own as a plain module of torch: ids in, logits of the next token out.

lmlab train plain_module:TinyTransformer mytext.txt --set width=128
lmlab compare mytext.txt --models ngram,plain_module:TinyTransformer
"""

import torch
from torch import nn


class TinyTransformer(nn.Module):
    """A small causal Transformer from torch's own layers."""

    def __init__(self, vocab_size: int, context: int = 64, width: int = 64, layers: int = 2, dropout: float = 0.1):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocab_size, width), nn.Embedding(context, width)
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout, batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.out = nn.Linear(width, vocab_size)

    def forward(self, ids):  # (rows, tokens) -> (rows, tokens, vocab_size)
        length = ids.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(length, device=ids.device)
        hidden = self.tokens(ids) + self.places(torch.arange(length, device=ids.device))
        return self.out(self.body(hidden, mask=mask, is_causal=True))
