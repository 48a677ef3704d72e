// SPDX-License-Identifier: Apache-2.0
// The program `tutti`: the only file that knows the command-line library.
#include <tutti/core/error.hpp>
#include <tutti/core/version.hpp>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <iostream>
#include <string>

#include "commands.hpp"

namespace {

void add_all_reduce_options(CLI::App& command, tutti::cli::AllReduceOptions& options) {
  // 64M is 64 * 1024 * 1024, as in nccl-tests.
  command.add_option("-b,--minbytes", options.least_bytes, "least size")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command.add_option("-e,--maxbytes", options.greatest_bytes, "greatest size")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command.add_option("-f,--stepfactor", options.factor, "from one size to the next")
      ->check(CLI::Range(2, 1 << 20))
      ->capture_default_str();
  command.add_option("-n,--iters", options.iterations, "timed operations a size")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command.add_option("-w,--warmup_iters", options.warmup, "operations before them")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command.add_option("-d,--dtype", options.dtype, "type of the elements")
      ->check(CLI::IsMember({"float64", "float32", "float16", "bfloat16", "int64", "int32", "int8", "uint8"}))
      ->capture_default_str();
  command.add_flag("--plain-memory", options.plain_memory, "ordinary tensors, which are copied through");
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Distributed data-parallel training for C++ programs"};
  app.name("tutti");
  app.set_version_flag("--version", std::string("tutti ") + tutti::version());
  app.require_subcommand(1);

  CLI::App* env = app.add_subcommand("env", "Show versions, CPU features, cores, threads, MPI and CUDA");
  CLI::App* bench = app.add_subcommand("bench", "Measure");
  bench->require_subcommand(1);
  tutti::cli::AllReduceOptions all_reduce_options;
  CLI::App* all_reduce = bench->add_subcommand(
      "all-reduce", "Time all_reduce; run it under mpirun: mpirun -np 2 tutti bench all-reduce");
  add_all_reduce_options(*all_reduce, all_reduce_options);

  int code = 0;
  try {
    app.parse(argc, argv);
    if (env->parsed()) code = tutti::cli::print_environment(argc, argv);
    if (all_reduce->parsed()) code = tutti::cli::bench_all_reduce(argc, argv, all_reduce_options);
  } catch (const CLI::ParseError& error) {
    code = app.exit(error);
  } catch (const std::exception& error) {  // a variable that holds nonsense, most likely
    std::fprintf(stderr, "tutti: %s\n", error.what());
    code = 1;
  }
  std::cout.flush();
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0 || !std::cout) {
    std::fputs("tutti: the output could not be written\n", stderr);
    return 1;
  }
  return code;
}
