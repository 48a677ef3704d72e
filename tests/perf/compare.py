# SPDX-License-Identifier: Apache-2.0
"""Runs Tutti and its peers in turns and prints a JSON object a line; run.sh starts it.

Each side is a process that lives as long as its cases and works only when it is told to, so the other has the
machine to itself. A turn is about 0.4 s on each side; ours, peer, ours, peer, ... The ratio is the median of the
pairs' ratios: how many times better Tutti is. For memory it is Tutti's part of the peer's.
"""
import argparse
import collections
import json
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import time

Case = collections.namedtuple("Case", "name case ranks modes items unit goal")

# A case with items counts them a second and rank; one without, microseconds for one repetition.
CASES = [
    Case("lenet_batch_64", "lenet", 1, ["eager", "channels_last", "compile"], 64, "images/s", 2.0),
    Case("lenet_batch_64_ddp", "lenet", 2, ["eager", "channels_last", "compile"], 64, "images/s and rank", 2.5),
    Case("mlp_batch_128", "mlp", 1, ["eager", "compile"], 128, "rows/s", 1.4),
    Case("mlp_batch_128_ddp", "mlp", 2, ["eager", "compile"], 128, "rows/s and rank", 3.0),
    Case("chain_of_200_small_ops", "chain", 1, ["eager"], None, "us", 10.0),
    Case("chain_of_200_small_ops_fused_by_the_peer", "chain", 1, ["compile"], None, "us", None),
    Case("1000_ranges_while_off", "ranges", 1, ["eager"], None, "us", None),
    Case("adamw_1000_tensors_of_64", "adamw_small", 1, ["foreach", "fused", "compile"], None, "us", 20.0),
    Case("adamw_25m_parameters", "adamw_large", 1, ["foreach", "fused", "compile"], None, "us", 1.2),
    Case("clip_grad_norm_25m", "clip_grad_norm", 1, ["eager"], None, "us", None),
    Case("add_4m", "add", 1, ["eager", "out"], None, "us", None),
    Case("exp_4m", "exp", 1, ["eager", "out"], None, "us", None),
    Case("gelu_4m", "gelu", 1, ["eager", "out"], None, "us", None),
    Case("gelu_4m_forward_backward", "gelu_backward", 1, ["eager"], None, "us", None),
    Case("softmax_4m_forward_backward", "softmax_backward", 1, ["eager"], None, "us", None),
    Case("cross_entropy_4m_forward_backward", "cross_entropy_backward", 1, ["eager"], None, "us", None),
]
PROCESSES = {"start_to_first_step": ("--first-step", "s", 20.0), "peak_memory_lenet": ("--memory", "MB", 0.2)}
ALL_REDUCE = "all_reduce"
ALL_REDUCE_GOAL = 2.5
TURN_SECONDS = 0.4
TURNS_PER_MODE = 3
HERE = pathlib.Path(__file__).parent
PEER_PYTHON = HERE / ".peer" / "bin" / "python"


def threads_environment():
    """One thread a process, on either side."""
    return os.environ | {"OMP_NUM_THREADS": "1", "TUTTI_NUM_THREADS": "1"}


def cores():
    return sorted(os.sched_getaffinity(0))


class Side:
    """The processes of one side, one a rank, each bound to a core of its own from the last one down."""

    def __init__(self, command, ranks):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.ranks = []
        for rank in range(ranks):
            environment = threads_environment()
            if ranks > 1:
                environment |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "RANK": str(rank)}
                environment |= {"WORLD_SIZE": str(ranks)}
                environment |= {"LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": str(ranks)}
            core = cores()[-1 - rank % len(cores())]
            self.ranks.append(
                subprocess.Popen(command, env=environment, text=True,
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 preexec_fn=lambda core=core: os.sched_setaffinity(0, {core})))
        self.per_turn = 1

    def ask(self, line):
        for rank in self.ranks:
            rank.stdin.write(line + "\n")
            rank.stdin.flush()
        answers = [rank.stdout.readline().strip() for rank in self.ranks]
        if not all(answers):
            sys.exit(f"{self.ranks[0].args}: ended after '{line}'")
        return answers

    def prepare(self, case, mode):
        self.ask(f"prepare {case} {mode}")
        self.per_turn = 1
        while (seconds := self.run() * self.per_turn) < TURN_SECONDS / 4:
            self.per_turn *= 4
        self.per_turn = max(1, round(self.per_turn * TURN_SECONDS / seconds))

    def run(self):
        """The slowest rank's seconds for one repetition."""
        return max(float(answer) for answer in self.ask(f"run {self.per_turn}")) / self.per_turn

    def close(self):
        for rank in self.ranks:
            rank.stdin.close()
        for rank in self.ranks:
            rank.wait(timeout=60)


def best_mode(peer, case):
    """The peer's fastest mode, prepared."""
    if len(case.modes) == 1:
        peer.prepare(case.case, case.modes[0])
        return case.modes[0]
    seconds = {}
    for mode in case.modes:
        peer.prepare(case.case, mode)
        seconds[mode] = statistics.median(peer.run() for _ in range(TURNS_PER_MODE))
    best = min(seconds, key=seconds.get)
    if best != case.modes[-1]:
        peer.prepare(case.case, best)
    return best


def report(name, pairs, unit, threads, peer_name, mode, goal, higher_is_better):
    """Prints a line for pairs of values (ours, peer)."""
    part = goal is not None and goal < 1
    ratios = [ours / peer if higher_is_better or part else peer / ours for ours, peer in pairs]
    median = [statistics.median(values) for values in zip(*pairs)]
    fields = {"name": name, "ours": float(f"{median[0]:.4g}"), "peer": float(f"{median[1]:.4g}"),
              "ratio": round(statistics.median(ratios), 2), "goal": goal, "unit": unit, "threads": threads,
              "peer_version": peer_name, "peer_mode": mode,
              "ratio_range": [round(min(ratios), 2), round(max(ratios), 2)], "load": round(os.getloadavg()[0], 1)}
    print(json.dumps(fields), flush=True)


def compare_cases(cases, program, pairs, peer_name):
    """Cases of one number of ranks, on one process a rank and side."""
    if not cases:
        return
    ranks = cases[0].ranks
    ours, peer = Side([program], ranks), Side([PEER_PYTHON, HERE / "peer.py"], ranks)
    for case in cases:
        mode = best_mode(peer, case)
        ours.prepare(case.case, "eager")
        seconds = [(ours.run(), peer.run()) for _ in range(pairs)]
        values = [tuple(case.items / s if case.items else s * 1e6 for s in pair) for pair in seconds]
        report(case.name, values, case.unit, ranks, peer_name, mode, case.goal, case.items is not None)
    ours.close()
    peer.close()


def output_of(command, env=None):
    return subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, check=True).stdout


def run_once(command):
    """Seconds from the start of the process until its line, and its peak memory in MB."""
    start = time.perf_counter()
    process = subprocess.Popen(command, env=threads_environment(), stdout=subprocess.PIPE, text=True)
    line = process.stdout.readline()
    seconds = time.perf_counter() - start
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if line != "done\n" or process.returncode != 0:
        sys.exit(f"{command}: ended with status {process.returncode}")
    return seconds, usage.ru_maxrss / 1024


def compare_processes(name, program, pairs, peer_name):
    option, unit, goal = PROCESSES[name]
    which = 0 if unit == "s" else 1
    commands = [program, option], [PEER_PYTHON, HERE / "peer.py", option]
    for command in commands:  # once for the page cache
        run_once(command)
    values = [tuple(run_once(command)[which] for command in commands) for _ in range(pairs)]
    report(name, values, unit, 1, peer_name, "eager", goal, False)


def compare_all_reduce(program, pairs):
    """Both sides are in one program, since both need MPI's job."""
    environment = threads_environment() | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    command = ["mpirun", "-np", "2"]
    if len(cores()) < 2:
        command += ["--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"]
    version = output_of(["mpirun", "--version"]).split("\n")[0].replace("mpirun (", "").replace(")", "")
    turns = collections.defaultdict(list)
    for line in output_of(command + [program, str(pairs)], env=environment).splitlines():
        size, memory, ours, peer = line.split()
        turns[int(size), memory].append((float(ours) * 1e6, float(peer) * 1e6))
    for (size, memory), values in turns.items():
        report(f"{ALL_REDUCE}_{size >> 10}_kib_{memory}", values, "us", 2, version, "MPI_Allreduce",
               ALL_REDUCE_GOAL, False)


def main():
    names = [case.name for case in CASES] + list(PROCESSES) + [ALL_REDUCE]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="folder of the programs ours and all_reduce")
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("names", nargs="*", metavar="name", help="all of: " + ", ".join(names))
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(names):
        parser.error(f"no benchmark is named {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    wanted = arguments.names or names
    peer_name = "PyTorch " + output_of([PEER_PYTHON, "-c", "import torch; print(torch.__version__)"]).strip()
    program = arguments.build / "ours"
    for ranks in (1, 2):
        cases = [case for case in CASES if case.ranks == ranks and case.name in wanted]
        compare_cases(cases, program, arguments.pairs, peer_name)
    for name in PROCESSES:
        if name in wanted:
            compare_processes(name, program, arguments.pairs, peer_name)
    if ALL_REDUCE in wanted:
        compare_all_reduce(arguments.build / "all_reduce", arguments.pairs)


if __name__ == "__main__":
    main()
