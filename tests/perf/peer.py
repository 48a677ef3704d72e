# SPDX-License-Identifier: Apache-2.0
"""PyTorch's side of the benchmarks; ours.cpp, which names the protocol, is the other.

With RANK and WORLD_SIZE in the environment it joins a process group over Gloo and trains under DistributedDataParallel.
"""
import os
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

WARM_UP = 5


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 3, padding=1)
        self.conv2 = nn.Conv2d(32, 64, 3, padding=1)
        self.fc1 = nn.Linear(64 * 49, 128)
        self.fc2 = nn.Linear(128, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc2(F.relu(self.fc1(x.flatten(1))))


def mlp():
    return nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))


def training(model, x, mode):
    """One step of SGD on one synthetic batch."""
    y = torch.randint(10, (len(x),))
    if mode == "channels_last":
        model = model.to(memory_format=torch.channels_last)
        x = x.contiguous(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        model = nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
    if mode == "compile":
        model = torch.compile(model)

    def step():
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(model(x), y).backward()
        optimizer.step()

    return step


def chain(mode):
    z = torch.randn(8, requires_grad=True)

    def forward(y):
        for _ in range(100):
            y = y * 1.01 + 0.1
        return y.sum()

    if mode == "compile":
        forward = torch.compile(forward)
    return lambda: forward(z).backward()


def ranges():
    def step():
        for _ in range(1000):
            with torch.profiler.record_function("step"):
                pass

    return step


def parameters_with_gradients(count, size):
    parameters = [torch.randn(size, requires_grad=True) for _ in range(count)]
    for parameter in parameters:
        parameter.grad = torch.randn_like(parameter)
    return parameters


def adamw(count, size, mode):
    if mode == "compile":
        return torch.compile(torch.optim.AdamW(parameters_with_gradients(count, size), lr=1e-3).step)
    return torch.optim.AdamW(parameters_with_gradients(count, size), lr=1e-3, **{mode: True}).step


def clip_grad_norm():
    parameters = parameters_with_gradients(50, 500_000)
    return lambda: nn.utils.clip_grad_norm_(parameters, 1.0)


def forward_only(op, mode):
    """Into a new tensor, or with mode "out" into one that is there."""
    x = torch.randn(4096, 1024)
    out = {"out": torch.empty_like(x)} if mode == "out" else {}

    def step():
        with torch.no_grad():
            op(x, **out)

    return step


def forward_backward(op):
    x = torch.randn(4096, 1024, requires_grad=True)
    grad_y = torch.ones_like(op(x.detach()))
    return lambda: torch.autograd.grad(op(x), x, grad_y)


def cross_entropy():
    y = torch.randint(1024, (4096,))
    return forward_backward(lambda x: F.cross_entropy(x, y))


CASES = {
    "lenet": lambda mode: training(LeNet(), torch.randn(64, 1, 28, 28), mode),
    "mlp": lambda mode: training(mlp(), torch.randn(128, 784), mode),
    "chain": lambda mode: chain(mode),
    "ranges": lambda mode: ranges(),
    "adamw_small": lambda mode: adamw(1000, 64, mode),
    "adamw_large": lambda mode: adamw(50, 500_000, mode),
    "clip_grad_norm": lambda mode: clip_grad_norm(),
    "add": lambda mode: forward_only(lambda x, **out: torch.add(x, x, **out), mode),
    "exp": lambda mode: forward_only(torch.exp, mode),
    "gelu": lambda mode: forward_only(torch._C._nn.gelu, mode),
    "gelu_backward": lambda mode: forward_backward(F.gelu),
    "softmax_backward": lambda mode: forward_backward(lambda x: F.softmax(x, -1)),
    "cross_entropy_backward": lambda mode: cross_entropy(),
}


def serve():
    step = None
    for line in sys.stdin:
        command, *arguments = line.split()
        if command == "prepare":
            step = None
            case, mode = arguments
            step = CASES[case](mode)
            for _ in range(WARM_UP):
                step()
            print("ready", flush=True)
        else:
            if torch.distributed.is_initialized():
                torch.distributed.barrier()
            start = time.perf_counter()
            for _ in range(int(arguments[0])):
                step()
            print(time.perf_counter() - start, flush=True)


def train_lenet(steps):
    step = training(LeNet(), torch.randn(64, 1, 28, 28), "eager")
    for _ in range(steps):
        step()
    print("done", flush=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(0)
    option = sys.argv[1] if len(sys.argv) > 1 else ""
    if option == "--first-step":
        train_lenet(1)
    elif option == "--memory":
        train_lenet(100)
    else:
        if "RANK" in os.environ:
            torch.distributed.init_process_group("gloo")
        serve()
