#include "interpose/end_job.hpp"

#include <cstdlib>

#include "base/last_words.hpp"

namespace papaya {

void end_job(const std::string& sentence, int code, MPI_Comm comm) noexcept {
  log::last_words(sentence);
  PMPI_Abort(comm, code);
  std::abort();
}

}  // namespace papaya
