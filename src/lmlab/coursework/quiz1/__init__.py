"""quiz1: a quiz on variational inference, shapes of derivatives, an autoencoder and attention; it gives no answers."""
