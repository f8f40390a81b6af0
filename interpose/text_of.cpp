#include "interpose/text_of.hpp"

#include <fmt/format.h>

namespace papaya {

std::string text_of(MPI_Comm comm) {
  char name[MPI_MAX_OBJECT_NAME] = "";
  int length = 0;
  int size = 0;
  PMPI_Comm_get_name(comm, name, &length);
  PMPI_Comm_size(comm, &size);
  return fmt::format("{} ({} ranks)", length > 0 ? name : "a communicator without name", size);
}

std::string missing_ranks(const Prepared& waiting, int size, int& count) {
  std::string missing;
  count = 0;
  for (int rank = 0; rank < size; ++rank) {
    if (!waiting.is_missing(rank)) continue;
    if (++count <= 16) missing += fmt::format("{}{}", missing.empty() ? "" : ", ", rank);
  }
  if (count > 16) missing += fmt::format(" and {} more", count - 16);
  return missing;
}

}  // namespace papaya
