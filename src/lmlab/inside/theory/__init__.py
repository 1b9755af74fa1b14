"""What theory says of the inside of models, computed and shown: gradients through time, attention, positions, dot products."""
