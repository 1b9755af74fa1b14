"""Execution plans: how the steps of a run are taken (docs/execution.md).

A resumed run follows its plan on the same machine and gets a new plan on another.
"""

from __future__ import annotations

from dataclasses import replace

from lmlab.config import Budget
from lmlab.hardware.choice import Hardware, as_asked, as_planned, choose, precision_name
from lmlab.hardware.execution_plan import ExecutionPlan
from lmlab.hardware.races import answers, as_begun
from lmlab.hardware.versions import machine_name
from lmlab.interface import Learner
from lmlab.learn.choose_optimizer import matrix_interval, method_for
from lmlab.learn.loop import Trainer
from lmlab.learn.onlookers import Watch
from lmlab.learn.pace import MOST_PLANNING, Speed
from lmlab.learn.run import Run
from lmlab.learn.run_files import write_record
from lmlab.learn.settings import TrainConfig
from lmlab.learn.task import Task
from lmlab.learn.world import SINGLE_PROCESS, World


def plan_for(
    model: Learner, task: Task, loop: TrainConfig, hardware: Hardware, speed: Speed | None = None
) -> ExecutionPlan:
    """Return the execution plan of a run that starts on this machine under its present load.

    Args:
        model: the model before its first step.
        task: the training objective.
        loop: the settings of the training loop.
        hardware: the hardware chosen for the run.
        speed: the measured speed, for a budget of seconds.
    """
    return ExecutionPlan(
        machine=machine_name(hardware.device.type),
        device=hardware.device.type,
        precision=precision_name(hardware.dtype),
        muon_precision=precision_name(hardware.iteration_dtype),
        threads=hardware.now,
        rows=task.rows,
        stepping=hardware.stepping,
        optimizer=method_for(model, loop),
        matrix_every=matrix_interval(model, task, loop, hardware),
        tokens_per_second=None if speed is None else speed.tokens_per_second,
        tokens=None if speed is None else speed.tokens,
        planning_s=0.0 if speed is None else speed.planning_s,
    )


def rehearsed(plan: ExecutionPlan, trainer: Trainer) -> ExecutionPlan:
    """Complete a plan by a rehearsal step, which selects the C functions and the stepping mode."""
    with as_begun({}):
        taken_s = trainer.rehearse()
        whole = replace(plan, kernels=answers(), stepping=trainer.steps.name, planning_s=plan.planning_s + taken_s)
    return trainer.world.broadcast(whole)


def left_after_planning(budget: Budget, plan: ExecutionPlan | None) -> Budget:
    """Return a budget of seconds without the seconds that planning used. Other budgets are unchanged."""
    if budget.seconds is None or plan is None:
        return budget
    return Budget(seconds=max(budget.seconds - plan.planning_s, (1 - MOST_PLANNING) * budget.seconds))


def keep_plan(run: Run, plan: ExecutionPlan | None, watch: Watch, world: World = SINGLE_PROCESS) -> None:
    """Write a plan into the record of a run, after the plans of other machines."""
    training = run.record.training
    if plan == training.plan:
        return
    earlier = training.earlier_plans
    if training.plan is not None:
        earlier = (*earlier, training.plan)
        watch.say(
            f"{run.record.model.name}: resumed on another machine, by a new plan; from here on it is no longer"
            " bit-identical to a run that stays on one machine"
        )
    run.record = replace(run.record, training=replace(training, plan=plan, earlier_plans=earlier))
    if world.is_writer:
        write_record(run)


def is_of_another_machine(plan: ExecutionPlan | None, hardware: Hardware) -> bool:
    """Whether a plan was made on another machine. A plan of an older record names no machine and counts as of this one."""
    return plan is not None and plan.machine not in (None, machine_name(hardware.device.type))


def loop_of_plan(loop: TrainConfig, plan: ExecutionPlan | None) -> TrainConfig:
    """Return the loop settings of a resumed run: rows and `matrix_every` are those of its plan, on any machine."""
    if plan is None:  # a record of an older format: Muon updates every matrix in every step
        return replace(loop, matrix_every=loop.matrix_every or 1)
    return replace(loop, rows=loop.rows or plan.rows, matrix_every=loop.matrix_every or plan.matrix_every)


def hardware_of_plan(plan: ExecutionPlan, device: str, precision: str) -> Hardware:
    """Return the hardware of a resumed run: as planned on the same machine, chosen anew on another.

    Args:
        plan: the plan of the run.
        device: the requested device.
        precision: the requested precision.
    """
    found = choose(device, precision)
    if not is_of_another_machine(plan, found):
        return as_planned(found, plan)
    is_eager = (plan.matrix_every or 1) > 1 or (plan.device, plan.stepping) == (found.device.type, "eager")
    return as_asked(found, "eager") if is_eager else found
