"""The optimizer of a training: what was asked for, and for the rest what suits the model, its task and this hardware."""

from __future__ import annotations

from lmlab.hardware.choice import Hardware
from lmlab.interface import Learner
from lmlab.learn.optimizer import Optimizer, OptimizerConfig, flops_of_muon
from lmlab.learn.settings import TrainConfig
from lmlab.learn.task import Task
from lmlab.learn.turns import steps_between


def optimizer_for(model: Learner, task: Task, config: TrainConfig, hardware: Hardware) -> Optimizer:
    """Of the weights of this model, with nothing learned yet."""
    method = method_for(model, config)
    return Optimizer(
        dict(model.named_parameters()),
        OptimizerConfig(
            adaptive="adagrad" if method == "adagrad" else "adamw",
            learning_rate=config.learning_rate or model.default_learning_rate,
            matrix_learning_rate=config.matrix_learning_rate or model.default_matrix_learning_rate,
            momentum=model.default_momentum,
            weight_decay=model.default_weight_decay if config.weight_decay is None else config.weight_decay,
            matrix_every=every_how_many(model, task, config, hardware),
            iteration_dtype=hardware.iteration_dtype,
        ),
        model.hidden_matrices() if method == "muon" else {},
        model.read_by_row,
    )


def method_for(model: Learner, config: TrainConfig) -> str:
    """Muon has nothing to do where there are no hidden matrices."""
    method = config.optimizer or model.default_optimizer
    return method if method != "muon" or model.hidden_matrices() else "adamw"


def every_how_many(model: Learner, task: Task, config: TrainConfig, hardware: Hardware) -> int:
    """Steps from one move of a matrix by Muon to its next."""
    if config.matrix_every is not None or not hardware.turns or method_for(model, config) != "muon":
        return config.matrix_every or 1
    per_thing = task.training_flops(model)
    batch = task.batch(config.seed, 0)
    return in_turns(model, None if per_thing is None else per_thing * batch.count / len(task.pieces(batch)))


def in_turns(model: Learner, flops_of_a_step: float | None) -> int:
    """The same where it is to be chosen. flops_of_a_step: the update apart; None: not known."""
    matrices = model.hidden_matrices()
    of_muon = sum(flops_of_muon({name: model.get_parameter(name).shape for name in matrices}, matrices).values())
    return steps_between(of_muon, flops_of_a_step, model.default_momentum)
