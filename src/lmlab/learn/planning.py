"""Plan how the steps of a run are taken (docs/execution.md); a resumed run follows its plan, or gets a new one elsewhere."""

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


def plan_for(
    model: Learner, task: Task, loop: TrainConfig, hardware: Hardware, speed: Speed | None = None
) -> ExecutionPlan:
    """Plan the steps of a run that begins here and now.

    Args:
        model: before its first step.
        task: that it learns.
        loop: the settings of the training loop.
        hardware: that was chosen for the run.
        speed: for a budget of seconds, what was measured.
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
    """Complete a plan by a step that is taken to no effect: functions in C, and how steps are taken."""
    with as_begun({}):
        taken_s = trainer.rehearse()
        return replace(plan, kernels=answers(), stepping=trainer.steps.name, planning_s=plan.planning_s + taken_s)


def left_after_planning(budget: Budget, plan: ExecutionPlan | None) -> Budget:
    """Return what planning has left of a budget of seconds; other budgets are untouched."""
    if budget.seconds is None or plan is None:
        return budget
    return Budget(seconds=max(budget.seconds - plan.planning_s, (1 - MOST_PLANNING) * budget.seconds))


def keep_plan(run: Run, plan: ExecutionPlan | None, watch: Watch) -> None:
    """Write the plan into the record of a run, behind the plans that it had on other machines."""
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
    write_record(run)


def is_of_another_machine(plan: ExecutionPlan | None, hardware: Hardware) -> bool:
    """Whether a plan was made on another machine than this one; an older record does not say."""
    return plan is not None and plan.machine not in (None, machine_name(hardware.device.type))


def loop_of_plan(loop: TrainConfig, plan: ExecutionPlan | None) -> TrainConfig:
    """Return the settings with which a run is resumed: rows and optimizer are those of its plan, on any machine."""
    if plan is None:  # an old run, in which every matrix moves in every step
        return replace(loop, matrix_every=loop.matrix_every or 1)
    return replace(loop, rows=loop.rows or plan.rows, matrix_every=loop.matrix_every or plan.matrix_every)


def hardware_of_plan(plan: ExecutionPlan, device: str, precision: str) -> Hardware:
    """Return the hardware with which a run is resumed: as planned on its own machine, chosen anew on another.

    Args:
        plan: of the run.
        device: that was asked for.
        precision: that was asked for.
    """
    found = choose(device, precision)
    if not is_of_another_machine(plan, found):
        return as_planned(found, plan)
    is_eager = (plan.matrix_every or 1) > 1 or (plan.device, plan.stepping) == (found.device.type, "eager")
    return as_asked(found, "eager") if is_eager else found
