// SPDX-License-Identifier: Apache-2.0
// What becomes of a step in which a rank has failed. The drawing in reducer.cpp's head says how all ranks learn of it.
#include <exception>

#include "parallel/reducer.hpp"
#include "parallel/step_status.hpp"
#include "tutti/autograd/guards.hpp"
#include "tutti/core/error.hpp"
#include "tutti/core/logging.hpp"

namespace tutti::parallel {

namespace {

constexpr const char* kMissing = "no gradient for ";
constexpr const char* kMissingAdvice =
    "\nEvery parameter must take part in the loss on every rank; freeze the others with "
    "requires_grad_(false) "
    "before wrapping the module.";
constexpr const char* kStepAdvice =
    "\nThis backward would have met an earlier one of other ranks: every rank must call backward in each "
    "step. "
    "Call forwards that have none under autograd::NoGradGuard.";

// What a rank gets because another one has failed.
bool is_comm_error(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const CommError&) {
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace

// What the buckets hold is no mean of anything: nobody may step on it.
void Reducer::drop_gradients() {
  for (Slot& slot : slots_) slot.parameter.set_grad({});
}

void Reducer::drop_step() {
  drop_gradients();
  reset();
}

// Without waiting for the others, whose step may be long: the program is about to learn of its exception. Only a hook's
// functions must be over, which may use what the program destroys next.
void Reducer::abandon() noexcept {
  abandoned_ = true;
  try {
    const autograd::NoGradGuard no_grad;
    const bool incomplete = next_bucket_ < buckets_.size();
    if (incomplete) launch_incomplete_buckets();
    if (comm_hook_) {
      wait_for_buckets();
      launch_status(true);
    }
    // The others exchange what has happened; this rank does it on the communication thread. If its last bucket had left with a
    // good status, they have a good step unless another rank has failed too, and learn in the next one that this rank had none.
    owes_a_step_ = !incomplete && !comm_hook_;
    const comm::Work last = comm_hook_ ? status_work_ : buckets_.back().work;
    report_ = last.then([group = group_, status = status_] {
      if (!read_status(status).good()) group->exchange("its backward has thrown an exception of its own");
    });
    drop_gradients();
    write_elsewhere();  // the buckets may still be under way when the next backward begins
  } catch (const std::exception& error) {
    logging::warning("DistributedDataParallel: can't tell the other ranks that backward has failed: ",
                     error.what());
  }
}

void Reducer::settle() {
  if (!abandoned_) return;
  wait_for_buckets();
  try {
    report_.wait();
    const StepStatus status = read_status(status_);
    if (!status.good()) {  // the others have dropped it too
      owes_a_step_ = false;
      count_anew();
    }
  } catch (const Error&) {  // the group's next operation says so again
  }
  reset();
  write_into_buckets();
}

std::string Reducer::own_failure(const std::exception_ptr& failure) const {
  if (failure != nullptr) {
    try {
      std::rethrow_exception(failure);
    } catch (const std::exception& error) {
      return concat("its comm hook: ", error.what());
    } catch (...) {
      return "its comm hook: an exception that is no std::exception";
    }
  }
  if (owes_a_step_) {
    return "its last backward has thrown after its gradients had left, so it has not made the step that the "
           "others have";
  }
  std::string missing;
  for (const Slot& slot : slots_) {
    if (!slot.ready) missing += concat(missing.empty() ? kMissing : ", ", slot.name);
  }
  return missing;
}

void Reducer::throw_failures(const std::exception_ptr& failure, const StepStatus& status) {
  std::string mine = own_failure(failure);
  if (status.out_of_step) {
    mine += concat(mine.empty() ? "" : "; ", skipped_->load(), " training forwards without a backward");
  }
  count_anew();
  const bool rethrows = failure != nullptr && !is_comm_error(failure);
  owes_a_step_ = false;
  drop_step();
  const std::vector<std::string> all = group_->exchange(mine);
  if (rethrows) std::rethrow_exception(failure);
  std::string text;
  bool some_missing = false;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (!all[rank].empty()) text += concat("\n  rank ", rank, ": ", all[rank]);
    some_missing = some_missing || all[rank].starts_with(kMissing);
  }
  throw AutogradError(concat("DistributedDataParallel: this backward has failed",
                             status.out_of_step ? ": the ranks are out of step" : "", ":", text,
                             some_missing ? kMissingAdvice : "", status.out_of_step ? kStepAdvice : "",
                             "\nAll gradients of this step were dropped."));
}

}  // namespace tutti::parallel
