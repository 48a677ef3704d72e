# SPDX-License-Identifier: Apache-2.0
"""ending.py PROGRAM WAY LAUNCHER...: runs `LAUNCHER... PROGRAM WAY` and checks how the job ends.

That is: the exit code; the message, whole, once, and after everything that other ranks have printed; and that no process of the job
outlives rank 1's failure for long, whatever other ranks compute (30 s) and whatever the deadline is (600 s). An exception that leaves
an Environment ends the job within AT_ONCE_S: the fastest of up to MOST_RUNS runs must, since a busy machine can hold up any one of
them. The launcher itself may take longer, so the time is taken at the job's processes: each holds a pipe open from its start to its
end.
"""
import os
import re
import subprocess
import sys
import tempfile
import threading
import time

# WAY: whether the exit code is 0, and lines that stand in the output once, as one piece.
WAYS = {
    "well": (True, []),
    "fork": (True, []),
    "lonely": (True, []),
    "unmatched": (True, []),
    "throw": (False, ["rank 1: the message of rank 1", "with a second line"]),
    "throw_while_computing": (False, ["rank 1: the message of rank 1", "with a second line"]),
    "caught": (False, ["main says: caught in main"]),
    "exit": (False, ["rank 1: the program has called exit() before its Environment ended"]),
    "die": (False, []),
    "leave": (False, []),
    "refused": (False, []),
    "unlike": (False, []),
    "late": (False, ["rank 0: the start of MPI: 1 s have passed, and not every process that the launcher has started has made its Environment"
                     " (TUTTI_TIMEOUT_S)"]),
    "late_end": (False, ["rank 0: the end of MPI: 4 s have passed, and not every rank has come to it (TUTTI_TIMEOUT_S)"]),
}
# What one of the ranks says, whichever is first.
ANY_OF = {
    "leave": "issue different operations: rank 0 all_reduce #7 (sum) of 1000 x float32, rank 1 end of the Environment #7",
}
# What each rank may say, until another one ends the job.
SOME_OF = {
    "lonely": re.compile(r"^\[tutti warning\] this process was started as one of several ranks, but has no Environment", re.M),
    "unlike": re.compile(r'^rank [01]: TUTTI_COMM_BACKEND must be the same on all ranks, but is "" on rank 0 and "mpi" on rank 1$', re.M),
}
# Each rank says it; the one that gives up first has left the job when the other does.
UNMATCHED = "[tutti warning rank {0}] recv #1 from rank {1} of 1000 x float32 "
GIVEN_UP = "with tag 7 in group 'world' has found no counterpart before the Environment has ended\n"
# Without a launcher that notices it first.
DIED = re.compile(r"rank 0: all_reduce #7 \(sum\) of 1000 x float32 in group 'world': rank 1 \(process \d+\) has died\n")
AT_ONCE = ("throw", "throw_while_computing", "caught", "exit")
AT_ONCE_S = 1
MOST_RUNS = 5
SOON_S = 10
LONGEST_S = 40


def watch(path, times):
    """Reads the moments at which ranks went wrong, until the last process of the job has ended."""
    with open(path, encoding="ascii") as pipe:
        text = pipe.read()
    times["end"] = time.clock_gettime(time.CLOCK_MONOTONIC)
    times["wrong"] = [float(line) for line in text.split()]


def run(program, way, launcher, pipe):
    times = {}
    watcher = threading.Thread(target=watch, args=(pipe, times), daemon=True)
    watcher.start()
    job = subprocess.Popen([*launcher, program, way], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                           env={**os.environ, "ENDING_PIPE": pipe})
    try:
        output, _ = job.communicate(timeout=LONGEST_S)
    except subprocess.TimeoutExpired:
        job.terminate()
        sys.exit(f"FAILED: the job runs for more than {LONGEST_S} s")
    watcher.join(LONGEST_S)
    return job.returncode, output, times


def failures(way, launcher, code, output, times):
    wants_zero, lines = WAYS[way]
    if (code == 0) != wants_zero:
        yield f"the exit code is {code}"
    if way == "refused" and (code != 2 or "has called exit" in output or "finalize" in output):
        yield "wanted exit code 2, which main returned, and no word about exit() or finalize"
    if "has passed" in output and way != "well":
        yield "a rank went on"
    if "end" not in times:
        yield "processes of the job are left"
    elif times["wrong"]:
        after = times["end"] - times["wrong"][0]
        if after > SOON_S:
            yield f"the last process ended {after:.3f} s after rank 1 went wrong"
    if lines:
        message = "".join(line + "\n" for line in lines)
        if output.count(message) != 1 or any(output.count(line) != 1 for line in lines):
            yield f"this does not stand there once, as one piece: {message!r}"
        elif [step for step in re.finditer(r"rank \d+ step \d+", output) if step.start() > output.index(message)]:
            yield "other ranks' output comes after the message"
    if way in AT_ONCE and any(output.count(f"rank 0 step {step}\n") != 1 for step in range(5)):
        yield "what rank 0 has printed is lost"
    if way in ANY_OF and output.count(ANY_OF[way]) != 1:
        yield f"this does not stand there once: {ANY_OF[way]!r}"
    if way in SOME_OF and (not SOME_OF[way].search(output) or "terminate called" in output):
        yield f"this is not what it says: {SOME_OF[way].pattern}"
    if way == "unmatched":
        if any(output.count(UNMATCHED.format(rank, 1 - rank)) != 1 for rank in (0, 1)) or GIVEN_UP not in output:
            yield "the receives without a counterpart are not named"
    if way == "die" and launcher[0] == "bash" and len(DIED.findall(output)) != 1:
        yield "rank 0 does not say that rank 1 has died"


def run_once(program, way, launcher):
    """The failures, and how long the job's processes outlived rank 1's failure."""
    with tempfile.TemporaryDirectory() as folder:
        pipe = os.path.join(folder, "pipe")
        os.mkfifo(pipe)
        code, output, times = run(program, way, launcher, pipe)
    print(output, end="")
    print(f"exit code {code}")
    after = times["end"] - times["wrong"][0] if times.get("wrong") else 0
    return list(failures(way, launcher, code, output, times)), after


def main():
    program, way, *launcher = sys.argv[1:]
    for remaining in reversed(range(MOST_RUNS)):
        found, after = run_once(program, way, launcher)
        print(f"the last process ended {after:.3f} s after rank 1 went wrong")
        if found or way not in AT_ONCE or after <= AT_ONCE_S:
            break
        if remaining == 0:
            found = [f"each time that took longer than {AT_ONCE_S} s"]
    for failure in found:
        print("FAILED:", failure)
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
