#include "tools/bench/native_variants.hpp"

#include <algorithm>
#include <utility>

#include "tools/bench/quiet.hpp"
#include "tuning/native_algorithms.hpp"
#include "tuning/selection_text.hpp"

namespace papaya::bench {

namespace {

// "coll_tuned_allreduce_algorithm"; -1: MPI has no such variable.
int variable_of(Collective collective) {
#ifdef OMPI_MAJOR_VERSION
  const std::string name = "coll_tuned_" + tuning::lower(name_of(collective)) + "_algorithm";
  int index = -1;
  return MPI_T_cvar_get_index(name.c_str(), &index) == MPI_SUCCESS ? index : -1;
#else
  static_cast<void>(collective);
  return -1;
#endif
}

}  // namespace

NativeVariants::NativeVariants(MPI_Comm world) : world_(world) {
  int level = 0;
  has_tools_ = MPI_T_init_thread(MPI_THREAD_SINGLE, &level) == MPI_SUCCESS;
}

NativeVariants::~NativeVariants() {
  for (auto& [which, communicator] : communicators_) PMPI_Comm_free(&communicator);
  if (has_tools_) MPI_T_finalize();
}

std::vector<std::string> NativeVariants::of(Collective collective) const {
  std::vector<std::string> selections;
  if (!has_tools_ || quiet::maximum(variable_of(collective) < 0 ? 1 : 0, world_) > 0) return selections;
  int ranks = 0;
  PMPI_Comm_size(world_, &ranks);
  for (const std::string_view name : tuning::openmpi_algorithms(collective))
    // With any other number of ranks two_proc fails.
    if (name != "ignore" && (name != "two_proc" || ranks == 2))
      selections.push_back(std::string(tuning::native_variant_prefix) + std::string(name));
  return selections;
}

bool NativeVariants::choose(Collective collective, int number) const {
  MPI_T_cvar_handle handle{};
  int count = 0;
  if (MPI_T_cvar_handle_alloc(variable_of(collective), nullptr, &handle, &count) != MPI_SUCCESS) return false;
  const bool is_written = count == 1 && MPI_T_cvar_write(handle, &number) == MPI_SUCCESS;
  MPI_T_cvar_handle_free(&handle);
  return is_written;
}

MPI_Comm NativeVariants::communicator(Collective collective, const std::string& selection) {
  if (!tuning::is_native_variant(selection)) return MPI_COMM_NULL;
  const auto [at, is_new] = communicators_.try_emplace({collective, selection}, MPI_COMM_NULL);
  if (!is_new) return at->second;
  const std::span<const std::string_view> names = tuning::openmpi_algorithms(collective);
  const auto found = std::find(names.begin(), names.end(), selection.substr(tuning::native_variant_prefix.size()));
  choose(collective, static_cast<int>(found - names.begin()));
  PMPI_Comm_dup(world_, &at->second);
  choose(collective, 0);
  return at->second;
}

}  // namespace papaya::bench
