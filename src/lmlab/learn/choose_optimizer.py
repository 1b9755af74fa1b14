"""The choice of the optimizer: explicit settings, and for the rest defaults by the model, its task and the hardware."""

from __future__ import annotations

from lmlab.hardware.choice import Hardware
from lmlab.interface import Learner
from lmlab.learn.optimizer import Optimizer, OptimizerConfig, flops_of_muon
from lmlab.learn.settings import TrainConfig
from lmlab.learn.task import Task
from lmlab.learn.update_interval import update_interval


def optimizer_for(model: Learner, task: Task, config: TrainConfig, hardware: Hardware) -> Optimizer:
    """Create the optimizer of a model, before its first step."""
    method = method_for(model, config)
    parameters = dict(model.named_parameters())
    return Optimizer(
        parameters,
        OptimizerConfig(
            adaptive="adagrad" if method == "adagrad" else "adamw",
            learning_rate=config.learning_rate or model.default_learning_rate,
            matrix_learning_rate=config.matrix_learning_rate or model.default_matrix_learning_rate,
            momentum=model.default_momentum,
            clip=config.clip,
            weight_decay=model.default_weight_decay if config.weight_decay is None else config.weight_decay,
            matrix_every=matrix_interval(model, task, config, hardware),
            iteration_dtype=hardware.iteration_dtype,
        ),
        model.hidden_matrices() if method == "muon" else {},
        [name for name in model.read_by_row if name in parameters],
    )


def method_for(model: Learner, config: TrainConfig) -> str:
    """Return the name of the optimization method. Muon is replaced by AdamW if the model has no hidden matrices."""
    method = config.optimizer or model.default_optimizer
    return method if method != "muon" or model.hidden_matrices() else "adamw"


def matrix_interval(model: Learner, task: Task, config: TrainConfig, hardware: Hardware) -> int:
    """Return the number of steps between two Muon updates of a matrix: `matrix_every`, or by sizes (`update_interval.py`).

    Captured steps are all alike, so with them every matrix is updated in every step.
    """
    if config.matrix_every is not None or hardware.stepping != "eager" or method_for(model, config) != "muon":
        return config.matrix_every or 1
    matrices = model.hidden_matrices()
    muon_flops = sum(flops_of_muon({name: model.get_parameter(name).shape for name in matrices}, matrices).values())
    per_thing, batch = task.training_flops(model), task.batch(config.seed, 0)
    other_flops = None if per_thing is None else per_thing * batch.count / len(task.pieces(batch))
    return update_interval(muon_flops, other_flops, model.default_momentum)
