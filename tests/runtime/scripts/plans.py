"""A planner (rank 0) and workers without torch: a plan a round, "go", and everybody acts on it.

    plans.py ROUNDS [HOW:RANK ...] [--save FOLDER]

HOW is what a worker does wrong, or what is done to it: ``keeps`` acts on the plan of the round before
although it has read the newer one; ``late`` gets plans a while after all else; ``twice`` gets
everything twice and in pairs swapped; ``asks`` waits for shorter than that, again and again; ``dies``
ends by SIGKILL in the middle round, once; ``orphan`` kills its host's agent there; ``bare`` has no
torch at all. What a rank acted on, what it was told, and which versions it put, is saved.
"""

import json
import os
import signal
import sys
import threading
from importlib.abc import MetaPathFinder
from pathlib import Path

import cascade_runtime as cascade

LATE_S = 0.2
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
arguments = sys.argv[1:]
folder = Path(arguments[arguments.index("--save") + 1]) if "--save" in arguments else None
arguments = arguments[: arguments.index("--save")] if folder else arguments
rounds = int(arguments[0])
pairs = [word.split(":") for word in arguments[1:]]
how = {what for what, who in pairs if int(who) == rank}
mortal = {int(who) for what, who in pairs if what == "dies"}


class NoTorch(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            raise ImportError("there is no torch here")


if os.environ["CASCADE_INCARNATION"] != "0":
    start = threading.Thread.start

    def start_late(thread):
        """The script is quicker than the thread that takes in what arrives."""
        if thread.name == "cascade-state":
            threading.Timer(LATE_S, start, [thread]).start()
        else:
            start(thread)

    threading.Thread.start = start_late
if "bare" in how:
    sys.modules.pop("torch", None)
    sys.meta_path.insert(0, NoTorch())
plan = cascade.State("plan")
work = cascade.State("work", kind="state")
deliver = plan._session.deliver
if "late" in how:
    plan._session.deliver = lambda update: (
        threading.Timer(LATE_S, deliver, [update]).start()
        if update.state == "plan" and update.version > 1
        else deliver(update)
    )
if "twice" in how:
    kept = []

    def in_pairs(update):
        kept.append(update)
        if len(kept) == 2:
            for one in (*reversed(kept), *kept):
                deliver(one)
            kept.clear()

    plan._session.deliver = in_pairs

acted, told, versions = [], [], []
begin = work.get("go", 0) + 1 if os.environ["CASCADE_INCARNATION"] != "0" else 1


def wait_for_go(number):
    if "asks" in how:
        while work.version("go") < number:
            try:
                work.get("go", at_least=number, timeout=LATE_S / 4)
            except cascade.NotYet as error:
                told.append(str(error))
    work.get("go", at_least=number, timeout=30)


def middle():
    if "orphan" in how:
        agent = Path(os.environ["CASCADE_RUN_DIR"], f"agent-{os.environ['CASCADE_AGENT']}.pid")
        os.kill(int(agent.read_text()), signal.SIGKILL)
    if "dies" in how and os.environ["CASCADE_INCARNATION"] == "0":
        os.kill(os.getpid(), signal.SIGKILL)


if rank == 0:
    for number in range(begin, rounds + 1):
        if number == rounds // 2:
            middle()
        versions.append(plan.put("route", {"number": number, "stops": list(range(number))}))
        work.put("go", number)
        for worker in range(1, world):
            if worker not in mortal:
                work.get(f"done/{worker}", at_least=number, timeout=30)
    for worker in mortal:
        if "--wait" in os.environ.get("PLANS", ""):
            work.get(f"back/{worker}", at_least=1, timeout=30)
else:
    held = None
    for number in range(begin, rounds + 1):
        wait_for_go(number)
        if number == rounds // 2:
            middle()
        entry = plan.entry("route")
        chosen, held = held if "keeps" in how and held else entry, entry
        if not plan.act(chosen):
            chosen = plan.entry("route")
            assert plan.act(chosen)
        acted.append(chosen.value["number"])
        work.put(f"done/{rank}", number)
    work.put(f"back/{rank}", begin)
if folder:
    folder.mkdir(parents=True, exist_ok=True)
    said = {"acted": acted, "told": told, "put": versions, "torch": "torch" in sys.modules}
    text = json.dumps(said)
    (folder / f"rank{rank}.json").write_text(text)
