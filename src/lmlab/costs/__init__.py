"""What a model costs: parameters, operations, memory and time, in symbols and in numbers.

symbolic    a model's parts with symbols for its sizes: the formulas, printed and as LaTeX
dispatcher  what PyTorch itself counts while a model runs, with the formulas it lacks
memory      what a training step needs, predicted without taking it, and measured
planner     how long a run takes, with which sharding it fits; published has what others reached, calibrate times this machine
counting    formula, instance and count of one model, side by side
families    models of other people by their config files; config_file reads these
growth      how operations grow with length and width; figures draws it, and where parameters and operations are
documents   the formulas of the course documents, and what they leave out
"""
