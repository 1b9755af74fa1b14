"""What a model costs: parameters, operations, memory and time, in symbols and in numbers.

symbolic    a model's parts with symbols for its sizes: the formulas, printed and as LaTeX
dispatcher  what PyTorch itself counts while a model runs, with the formulas it lacks
memory      what a training step needs, predicted without taking it, and measured
planner     the time of a run and the sharding with which it fits; published_runs and published_laws, calibrate: its rates
counting    formula, instance and count of one model, side by side
pieces      attention, networks and mixtures of experts; family says what a family of models declares
gpt_decoders, llama_decoders, mixtures, encoders: families of models by their config files; config_file reads these
growth      how operations grow with length and width; figures draws it, and where parameters and operations are
documents   the formulas of the course documents, and what they leave out
"""
