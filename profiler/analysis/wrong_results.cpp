#include "profiler/analysis/wrong_results.hpp"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "base/mpi_name.hpp"
#include "profiler/analysis/communicator_names.hpp"

namespace papaya::report {

std::string WrongResult::sentence() const {
  return fmt::format(
      "{} by {} differed from MPI's own in call {} on {}: element {} of the result on rank {} was {}, not {}{}", name,
      algorithm, call, communicator, element, rank, value, mpi_value,
      is_dropped ? "; later calls there went to MPI" : "; the algorithm stayed in use there");
}

std::vector<WrongResult> wrong_results(const Run& run) {
  std::vector<WrongResult> all;
  std::map<std::uint64_t, std::string> names;
  for (const RankFile& file : run.files) {
    for (const trace::Difference& one : file.header.differences) {
      if (one.collective >= collective_count || one.algorithm == 0 || one.algorithm >= file.algorithms->size())
        continue;
      if (names.empty()) names = communicator_names(run);
      const auto communicator = names.find(one.communicator);
      all.push_back({.name = mpi_name(static_cast<Collective>(one.collective), Form::blocking),
                     .algorithm = algorithm_name(file, one.algorithm),
                     .communicator = communicator == names.end() ? fmt::format("communicator {:x}", one.communicator)
                                                                 : communicator->second,
                     .call = one.call,
                     .rank = file.header.rank,
                     .element = one.element,
                     .value = clean_text({one.ours, sizeof one.ours}),
                     .mpi_value = clean_text({one.expected, sizeof one.expected}),
                     .is_dropped = one.is_dropped != 0});
    }
  }
  return all;
}

}  // namespace papaya::report
