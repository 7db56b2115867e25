"""What a prompt agent asks of the kernel, in processes of their own."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

SCRIPT = """
import ctypes, gc, json, os, struct, sys, threading
from cascade_runtime.agent import prompt

def attr():
    number = {"x86_64": 315, "aarch64": 275, "riscv64": 275}[os.uname().machine]
    told = ctypes.create_string_buffer(64)
    assert ctypes.CDLL(None).syscall(number, 0, told, 56, 0) == 0
    _, policy, _, nice, _, runtime, _, _ = struct.unpack("=IIQiIQQQ", told.raw[:48])
    return [policy, nice, runtime]

before = attr()
os.nice(int(sys.argv[1]))
if sys.argv[2:]:
    os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
prompt.be_prompt()
found = {"before": before, "after": attr(), "frozen": gc.get_freeze_count()}
thread = threading.Thread(target=lambda: found.update(thread=attr()))
thread.start()
thread.join()
read, write = os.pipe()
if os.fork() == 0:
    os.write(write, json.dumps(attr()).encode())
    os._exit(0)
os.wait()
found["child"] = json.loads(os.read(read, 4096))
print(json.dumps(found))
"""


def found(*arguments: str) -> dict[str, list[int]]:
    ran = subprocess.run(
        [sys.executable, "-c", SCRIPT, *arguments], capture_output=True, text=True, check=True
    )
    return json.loads(ran.stdout)


@pytest.mark.parametrize("nice", ["0", "5"])
def test_a_short_slice_for_the_agent_alone(nice: str) -> None:
    told = found(nice)
    usual = told["before"][2]
    if usual == 0:
        pytest.skip("this kernel knows no slices")
    policy, niceness, runtime = told["after"]
    assert (policy, niceness) == (0, min(19, told["before"][1] + int(nice))), "its share stays"
    assert runtime == min(usual, 100_000)
    for other in ("thread", "child"):
        assert told[other] == [0, niceness, usual]
    assert told["frozen"] > 1000


def test_who_has_a_policy_of_its_own_keeps_it() -> None:
    told = found("0", "batch")
    assert told["after"][0] == told["child"][0] == 3
    assert told["after"][2] == told["before"][2]
