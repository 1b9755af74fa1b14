"""What a model costs: parameters, operations, memory and time, in symbols and in numbers.

symbolic    a model's parts with symbols for its sizes: the formulas, printed and as LaTeX
dispatcher  what PyTorch itself counts while a model runs, with the formulas it lacks
counting    formula, instance and count of one model, side by side
families    models of other people by their config files; config_file reads these
documents   the formulas of the course documents, and what they leave out
"""
