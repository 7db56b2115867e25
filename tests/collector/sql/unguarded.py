"""A child that runs many statements, none of them checked: the walls behind the guard, tried fast.

Started by test_hostile.py as a process; stdin: JSON of the runs' folder and the statements.
"""

from __future__ import annotations

import json
import sys

from collector.sql import child, landlock
from collector.sql.confine import confine_cpu, confine_process, no_more_processes
from collector.sql.messages import DataView, Question, Setup
from tests.collector.sql.conftest import SMALL


def main() -> None:
    asked = json.load(sys.stdin)
    views = {name: DataView(name, "", (), sql, sql) for name, sql in asked["views"].items()}
    setup = Setup(
        runs=asked["runs"],
        memory_bytes=SMALL.memory_bytes,
        address_bytes=SMALL.memory_bytes + SMALL.overhead_bytes,
        output_bytes=SMALL.output_bytes,
        num_threads=SMALL.num_threads,
        time_s=SMALL.time_s,
    )
    # As child.main does it.
    confine_process(setup.address_bytes)
    db = child._connect(setup)
    child._warm_up(db)
    assert landlock.read_only_below([setup.runs])
    child._lock(db, setup)
    no_more_processes()
    confine_cpu(60, 1)
    told = {}
    for name, sql in asked["statements"].items():
        question = Question(sql, views, "json", 1000, guard=False)
        answer, body = child._answer(db.cursor(), setup, question)
        told[name] = [answer.outcome, answer.message, body.decode()]
    json.dump(told, sys.stdout)


if __name__ == "__main__":
    main()
