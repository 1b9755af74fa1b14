"""The names that other tools have for models and settings, and ours for them.

People who know nanoGPT, makemore, Hugging Face, KenLM or fairseq type the names of those. A name that means one thing here is
taken, and a note says what it is called. A name that means something else, or that we lack, is answered with what to type.
"""

from __future__ import annotations

from collections.abc import Container

MODELS: dict[str, str] = {
    **dict.fromkeys(("transformer", "nanogpt", "gpt2", "gpt-2", "gpt3", "decoder", "minigpt", "mingpt"), "gpt"),
    **dict.fromkeys(
        ("kneser-ney", "kneserney", "kn", "kenlm", "srilm", "n-gram", "ngrams", "markov", "trigram"), "ngram"
    ),
    **dict.fromkeys(("unigram", "bow", "bag-of-words", "bagofwords"), "bag"),
    **dict.fromkeys(("mlp", "nnlm", "ffnn", "feed-forward", "fnn", "bengio"), "feedforward"),
    **dict.fromkeys(("conv", "convnet", "wavenet", "tcn", "gated-cnn", "textcnn"), "cnn"),
    **dict.fromkeys(("elman", "vanilla-rnn", "rnnlm", "simplernn", "char-rnn"), "rnn"),
    **dict.fromkeys(("awd-lstm", "elmo"), "lstm"),
    **dict.fromkeys(("roberta", "mlm", "masked"), "bert"),
    **dict.fromkeys(("seq2seq", "nmt"), "translator"),
    **dict.fromkeys(("random", "uniform-random"), "uniform"),
    "vae": "variational",
}
"""Their names for kinds of models that are here under another name."""

_RECURRENT = "the models here that carry a state are rnn, gru and lstm"
_WEIGHTS = (
    "gpt is a Transformer decoder trained from nothing; published weights come in by lmlab import FOLDER --out RUN"
)
NOT_HERE: dict[str, str] = {
    **dict.fromkeys(("mamba", "mamba2", "s4", "s5", "ssm", "rwkv", "xlstm", "retnet", "hyena", "griffin"), _RECURRENT),
    **dict.fromkeys(
        ("llama", "llama2", "llama3", "mistral", "qwen", "gemma", "phi", "olmo", "pythia", "bloom"), _WEIGHTS
    ),
    **dict.fromkeys(("t5", "bart"), "an encoder with a decoder is translator, and one without is bert"),
    **dict.fromkeys(("word2vec", "w2v", "skipgram", "cbow", "fasttext"), "word vectors are learned by glove"),
    **dict.fromkeys(
        ("ppm", "cmix", "paq", "ctw", "zpaq"), "compressors beside gzip, bzip2, xz and zstd are not compared"
    ),
}
"""Their names for kinds of models that are not here, and what is."""

SETTINGS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(
        ("n_layer", "n_layers", "num_layers", "nlayers", "num_hidden_layers", "decoder_layers", "depth"), ("layers",)
    ),
    **dict.fromkeys(
        ("n_head", "n_heads", "num_heads", "nhead", "nheads", "num_attention_heads", "decoder_attention_heads"), ("heads",)
    ),
    **dict.fromkeys(
        ("n_embd", "n_embed", "emb_dim", "embed_dim", "emsize", "embedding_dim", "embedding_size"),
        ("embedding_width", "width"),
    ),
    **dict.fromkeys(
        ("n_hidden", "nhid", "hidden_dim", "hidden_size", "hidden_units", "d_model", "dim", "model_dim"), ("width",)
    ),
    **dict.fromkeys(
        ("block_size", "context_length", "context_size", "n_ctx", "n_positions", "max_position_embeddings", "seq_len",
         "seq_length", "max_seq_len", "sequence_length", "tokens_per_sample", "bptt"),
        ("context", "length"),
    ),
    **dict.fromkeys(("n", "ngram_order", "o", "ngram", "ngram_size", "n_gram"), ("order",)),
    **dict.fromkeys(("p_drop", "dropout_rate", "drop", "resid_pdrop", "hidden_dropout_prob", "embd_pdrop"), ("dropout",)),
    **dict.fromkeys(("tie_weights", "tied", "weight_tying", "tie_word_embeddings"), ("tie",)),
    **dict.fromkeys(
        ("mlp", "mlp_type", "activation_function", "hidden_act", "act", "activation_fn", "nonlinearity"), ("activation",)
    ),
    **dict.fromkeys(("num_kv_heads", "num_key_value_heads", "n_kv_heads", "n_kv_head"), ("kv_heads",)),
    **dict.fromkeys(("rope_theta", "rope_base"), ("rotary_base",)),
    **dict.fromkeys(("sliding_window", "window_size", "attention_window"), ("window",)),
    **dict.fromkeys(("intermediate_size", "ffn_dim", "n_inner", "d_ff", "dim_feedforward"), ("hidden",)),
    **dict.fromkeys(("pos_emb", "position_embedding", "position_encoding", "position_embedding_type"), ("positions",)),
    **dict.fromkeys(
        ("batch", "batch_size", "bs", "micro_batch_size", "per_device_train_batch_size", "max_sentences", "train_batch_size"),
        ("rows",),
    ),
    **dict.fromkeys(("lr", "rate", "max_lr", "alpha", "eta"), ("learning_rate",)),
    **dict.fromkeys(("muon_lr", "matrix_lr"), ("matrix_learning_rate",)),
    **dict.fromkeys(("wd", "l2"), ("weight_decay",)),
    **dict.fromkeys(("early_stopping_patience", "early_stopping"), ("patience",)),
    **dict.fromkeys(("optim", "optimizer_type"), ("optimizer",)),
    **dict.fromkeys(("grad_clip", "max_grad_norm", "gradient_clip_val", "clipping", "clip_norm"), ("clip",)),
    **dict.fromkeys(("schedule", "scheduler", "lr_scheduler_type", "lr_schedule"), ("decay",)),
    "warmup_ratio": ("warmup",),
}  # fmt: skip
"""Their names for settings; of ours the first that a model has is meant."""

OF_TRAINING = frozenset(
    ("rows", "length", "learning_rate", "matrix_learning_rate", "weight_decay", "patience", "optimizer", "validations",
     "warmup", "decay", "decay_to", "clip",
     "micro_batches", "stepping", "calibrate")
)  # fmt: skip
"""Settings of ours that are of the training loop; a test holds this to the loop."""

OF_MODELS = frozenset(ours for names in SETTINGS.values() for ours in names) - OF_TRAINING

ELSEWHERE: dict[str, tuple[str, dict[str, object]]] = {
    **dict.fromkeys(
        ("max_iters", "max_steps", "num_steps", "steps", "iterations", "n_iters", "num_iterations", "max_update",
         "total_steps"),
        ("the number of steps is a budget: {budget}", {"budget": "500steps"}),
    ),
    **dict.fromkeys(
        ("epochs", "num_epochs", "num_train_epochs", "max_epoch", "n_epochs"),
        ("epochs are a budget: {budget}", {"budget": "2epochs"}),
    ),
    **dict.fromkeys(
        ("vocab_size", "n_vocab", "vocabulary_size"), ("the tokenizer decides it: {tokenizer}", {"tokenizer": "bpe:1000"})
    ),
    **dict.fromkeys(
        ("eval_interval", "eval_iters", "eval_steps", "eval_every"),
        ("the number of validations is: {validations}", {"validations": 20}),
    ),
    **dict.fromkeys(("seed", "random_seed"), ("it is an option of its own: {seed}", {"seed": 1})),
    "device": ("it is an option of its own: {device}", {"device": "cpu"}),
    **dict.fromkeys(("precision", "dtype"), ("it is an option of its own: {precision}", {"precision": "float32"})),
    **dict.fromkeys(("out_dir", "output_dir", "save_dir"), ("it is an option of its own: {out}", {"out": "runs/mine"})),
    **dict.fromkeys(
        ("warmup_iters", "warmup_steps", "num_warmup_steps", "warmup_updates"),
        ("the warm-up is a share of the budget: {warmup}", {"warmup": 0.02}),
    ),
    **dict.fromkeys(
        ("min_lr", "lr_min", "end_learning_rate"),
        ("the last learning rate is a share of the highest: {decay_to}", {"decay_to": 0.1}),
    ),
    "decay_lr": ("the shape of its fall is: {decay}", {"decay": "cosine"}),
    "compile": ("how steps are taken is: {stepping}", {"stepping": "compiled"}),
    **dict.fromkeys(
        ("gradient_accumulation_steps", "grad_accum", "accumulate_grad_batches", "update_freq"),
        ("a step is cut into parts by: {micro_batches}", {"micro_batches": 4}),
    ),
}  # fmt: skip
"""Names of what is no setting of a model here, and what to give instead, as in the message of a `Mistake`."""


def _plain(name: str) -> str:
    return name.strip().lower().replace(" ", "-")


def model_name(name: str, known: Container[str]) -> str:
    """Return our name for a kind of model, or the name itself if it is known here or in no table."""
    return name if name in known else MODELS.get(_plain(name), name)


def about_model(name: str) -> str:
    """Return what there is instead of a kind of model that is not here; empty: the name is in no table."""
    return NOT_HERE.get(_plain(name), "")


def setting_name(name: str, known: Container[str]) -> str:
    """Return our name for a setting, or the name itself if it is known here or none of ours is."""
    if name in known:
        return name
    theirs = name.strip().lower().lstrip("-").replace("-", "_")
    return next((ours for ours in SETTINGS.get(theirs, ()) if ours in known), name)


def about_setting(name: str, value: object, known: Container[str]) -> tuple[str, dict[str, object]]:
    """Return where something is set that is no setting of what was asked, as a message and its settings; empty: unknown.

    Args:
        name: the name that was given.
        value: its value.
        known: the settings of what was asked: of the model or of the training loop.
    """
    theirs = name.strip().lower().lstrip("-").replace("-", "_")
    if theirs in ELSEWHERE:
        return ELSEWHERE[theirs]
    asks_training = "learning_rate" in known
    for ours in (theirs, *SETTINGS.get(theirs, ())):
        if ours in OF_TRAINING and not asks_training:
            return f"it is a setting of training: {{{ours}}}", {ours: value}
        if asks_training and ours in OF_MODELS:
            return f"it is a setting of the model: {{{ours}}}", {ours: value}
    return "", {}
