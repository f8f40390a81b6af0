// What is wrong that all ranks know of, so that all can end: a sentence that rank 0 tells. Whatever else a rank throws
// ends the job.
#pragma once

#include <stdexcept>

struct Mistake : std::runtime_error {
  using std::runtime_error::runtime_error;
};
