#include "base/last_words.hpp"

#include <time.h>

#include "base/log.hpp"

namespace papaya::log {

void last_words(const std::string& sentence) noexcept {
  error(sentence);
  // MPICH's launcher now and then drops what it has not read yet when a job is aborted.
  const timespec to_be_read{0, 200'000'000};
  nanosleep(&to_be_read, nullptr);
}

}  // namespace papaya::log
