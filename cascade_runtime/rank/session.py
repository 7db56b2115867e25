"""One attached job in one process: opens the parts in order and closes them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.optim import Optimizer

from cascade_runtime.agent.config import read_config
from cascade_runtime.agent.control_log import ControlLog
from cascade_runtime.agent.hosts import lifeline_hosts
from cascade_runtime.agent.protocol import NotWanted, View, Welcome
from cascade_runtime.checkpoints.loads import Load
from cascade_runtime.progress import ProgressWord
from cascade_runtime.rank.channel import BOUND
from cascade_runtime.rank.checkpointing import Checkpointing
from cascade_runtime.rank.constructed import scalers, schedulers_of
from cascade_runtime.rank.feed import Feeds
from cascade_runtime.rank.first_rows import first_rows
from cascade_runtime.rank.going_on import all_loaded_alike, note_loads
from cascade_runtime.rank.groups import GlooFactory
from cascade_runtime.rank.joining import Newcomer
from cascade_runtime.rank.lifeline import Lifelines
from cascade_runtime.rank.link import AgentLink, AgentLost
from cascade_runtime.rank.loop import watch_loop
from cascade_runtime.rank.member import Member
from cascade_runtime.rank.objects import ModelObjects
from cascade_runtime.rank.observer import StepObserver
from cascade_runtime.rank.reducer import StepReducer
from cascade_runtime.rank.snapshot import TrainingState
from cascade_runtime.rank.wrap import check_model, has_hook, rebuild, take_over
from cascade_runtime.rank.zombie import end_newcomer, leave_behind, look_when_continued
from cascade_runtime.recorder import Recorder
from cascade_runtime.step_ring import StepRing
from cascade_runtime.vocabulary.errors import BadUsage, NotSupported
from cascade_runtime.vocabulary.events import Objects
from cascade_runtime.vocabulary.identity import Actor
from cascade_runtime.vocabulary.policy import load_policy

ATTACH_PATIENCE_S = 600.0
"""How long a rank waits for the others to attach; loading a model may take minutes."""


class Session:
    """The parts of an attached job."""

    def __init__(
        self,
        member: Member,
        stepper: StepReducer | StepObserver,
        recorder: Recorder,
        link: AgentLink,
        objects: ModelObjects,
    ) -> None:
        self.member = member
        self.stepper = stepper
        self.before_forward: Callable[[DistributedDataParallel], None] = lambda ddp: None
        """What is to be called before a forward that had begun before ``attach``."""
        self._recorder = recorder
        self._link = link
        self.checkpoints = Checkpointing(member, objects, recorder)
        self._pid = os.getpid()
        self._finished = False
        self.stop_note: Path | None = None
        """There once somebody has ended the whole job early."""
        self.joined_at: int | None = None
        """Decided steps when this rank joined a running job; None for those of its beginning."""
        self.asked_for_step = False
        """The script has called start_step."""

    @classmethod
    def open(
        cls,
        ddp: DistributedDataParallel,
        optimizer: Optimizer,
        mode: str | None,
        trace_dir: Path | None,
        loads: list[Load],
    ) -> Session:
        """Check, connect, wait for the first view, take the model over, hook in.

        Args:
            ddp, optimizer, mode, trace_dir: as for ``attach``.
            loads: what the script said it had loaded so far.

        Raises:
            BadUsage, NotSupported: as ``attach``.
        """
        del trace_dir  # the launcher chose it
        run_dir = os.environ["CASCADE_RUN_DIR"]
        config = read_config(Path(run_dir) / "job.json")
        if mode not in (None, config.mode):
            raise BadUsage(
                f"attach asks for {mode}, and cascade run started the agents to {config.mode}",
                where="mode",
                hint="leave mode out of attach and give cascade run --observe, or not",
            )
        mode = config.mode
        model = check_model(ddp, optimizer, enforce=mode == "enforce")
        if has_hook(model):
            raise NotSupported(
                "this model has a communication hook already, and DDP can hold only one",
                where="attach",
                hint="leave the hook out, or train without cascade",
            )
        rank = int(os.environ["RANK"])
        if dist.get_world_size(model.process_group) != config.world_size_of(rank):
            raise NotSupported(
                f"the model spans {dist.get_world_size(model.process_group)} of the job's "
                f"{config.world_size_of(rank)} ranks",
                where="attach",
                hint="this release covers models replicated over all ranks",
            )
        actor = Actor(rank, int(os.environ.get("CASCADE_INCARNATION", "0")))
        with_buffers = mode == "enforce" and model.broadcast_buffers
        objects = ModelObjects(model.module, optimizer, with_buffers=with_buffers)
        recorder = Recorder(Path(config.trace_dir) / "spool", config.run_id, actor)
        agent = int(os.environ["CASCADE_AGENT"])
        may_part = mode == "enforce" and load_policy(config.policy).cohorts.split
        first_rows(recorder, config, agent)
        _object_rows(recorder, objects, BOUND if may_part else None)
        if not config.comes_later(actor):
            note_loads(config, actor, objects.identity(), loads)
        link = AgentLink(config.socket_path(agent), actor, ControlLog(recorder))
        progress = ProgressWord(config.progress_path(actor))

        def leave(why: str) -> None:
            leave_behind(f"rank {actor} {why}", config.exit_path(actor), recorder.close)

        def on_fenced() -> None:
            leave(f"was stopped for {progress.stopped_s:.1f} s")

        def look_at_fence() -> None:
            if progress.fenced:
                on_fenced()

        link.on_pump = look_at_fence  # a newcomer may be fenced before it hears of a view
        view = _first_view(link, lambda told: end_newcomer(
            f"rank {actor} {told.why}", told.code, config.exit_path(actor), recorder.close
        ))  # fmt: skip
        steps = StepRing(config.steps_path(actor))
        member = Member(actor, view, objects, recorder, link, progress, steps)
        member.on_fenced, member.on_left_behind = on_fenced, leave
        stepper: StepReducer | StepObserver
        if mode == "observe":
            stepper = StepObserver(member, link, recorder, model.process_group)
        else:
            take_over(model)
            state = TrainingState(
                model.module, optimizer, lambda: [*schedulers_of(optimizer), *scalers()], objects
            )
            factory = GlooFactory(link, "127.0.0.1")
            token = bytes.fromhex(config.secret)
            stepper = StepReducer(
                member, link, recorder, factory, state, may_part=may_part, token=token
            )
            others = lifeline_hosts(agent, config.num_hosts)
            lifelines = Lifelines([config.socket_path(i) for i in others], actor)

            def on_pump() -> None:
                member.check_fence()
                lifelines.look()

            link.on_pump = on_pump
            look_when_continued(member.check_fence)
        session = cls(member, stepper, recorder, link, objects)
        session.stop_note = config.stop_path()
        if isinstance(stepper, StepReducer):
            stepper.feeds = Feeds(member, state, recorder)
            stepper.params = dict(model.module.named_parameters())
            stepper.param_names = {id(p): name for name, p in stepper.params.items()}
        if isinstance(stepper, StepReducer) and actor not in view.members:
            newcomer = Newcomer(
                member, link, recorder, state, config.join_path(actor), config.exit_path(actor),
                config.refusal_path(actor),
            )  # fmt: skip
            joined = newcomer.join()
            if newcomer.has_frozen_or_thawed:
                rebuild(model, model.process_group)
            link.on_return = stepper.tell_again
            stepper.join_as_told(newcomer.layout)
            session.joined_at = member.decided
            stepper.enter_joined(joined)
        else:
            if all_loaded_alike(config):  # before a walk is answered, which tells where we stand
                session.checkpoints.go_on_from(loads)
            stepper.enter_first_view()
            for load in loads:  # not a newcomer's: its state is a member's, whatever it had loaded
                session.checkpoints.loaded(load)
        model.register_comm_hook(None, stepper.hook)
        session.before_forward = watch_loop(model, optimizer, stepper, session._tell_of_start)
        if isinstance(stepper, StepReducer) and may_part:
            stepper.aside.start()
        return session

    def _tell_of_start(self) -> None:
        """A training forward begins: a newcomer's script should have asked where to begin."""
        if self.joined_at and not self.asked_for_step:
            self.asked_for_step = True
            sys.stderr.write(
                f"cascade: rank {self.member.actor} joined after step {self.joined_at}, and its "
                f"script's loop may begin at 0: it would run {self.joined_at} steps longer than the "
                "others. Let the loop begin at cascade_runtime.start_step()\n"
            )

    def finish(self) -> None:
        """Leave, once, and only in the process that attached."""
        if self._finished or os.getpid() != self._pid:
            return
        self._finished = True
        if isinstance(self.stepper, StepReducer):
            self.stepper.aside.stop()
        if self.stop_note is not None and self.stop_note.exists():
            # Nobody answers a LEAVE any more. The script took the signal itself, and ends in its way.
            self._recorder.close()
            self._link.close()
            return
        try:
            self.stepper.leave()
        except AgentLost:
            # The job's results are the user's; that nobody is left to tell is only noted.
            self._recorder.close()
            return
        self._recorder.close()
        self._link.close()


def _object_rows(recorder: Recorder, objects: ModelObjects, bound: int | None) -> None:
    for i, name in enumerate(objects.names):
        # What other cohorts do not take over has no bound.
        most = bound if i < objects.num_params else None
        recorder.row(Objects, object=name, kind="shard", update_kind="delta", staleness_bound=most)


def _first_view(link: AgentLink, end: Callable[[NotWanted], NoReturn]) -> View:
    message = link.receive(timeout_s=ATTACH_PATIENCE_S)
    if isinstance(message, NotWanted):
        end(message)
    if not isinstance(message, Welcome):
        raise BadUsage(
            f"the job's other ranks did not attach within {ATTACH_PATIENCE_S:.0f} s",
            where="attach",
            hint="every rank must call attach (or construct DDP under cascade run)",
        )
    return message.view
