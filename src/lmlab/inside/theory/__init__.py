"""What theory says of the inside of models, shown by computing it: gradients through time, attention, positions, dot products."""
