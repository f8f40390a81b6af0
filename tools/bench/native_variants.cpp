#include "tools/bench/native_variants.hpp"

#include <bit>
#include <cctype>
#include <string_view>
#include <utility>

#include "tools/bench/quiet.hpp"
#include "tuning/native_algorithms.hpp"
#include "tuning/selection_text.hpp"

namespace papaya::bench {

namespace {

// -1: MPI has no such variable.
int index_of_variable(const std::string& name) {
  int index = -1;
  return MPI_T_cvar_get_index(name.c_str(), &index) == MPI_SUCCESS ? index : -1;
}

template <class Act>
void with_variable(int index, Act&& act) {
  MPI_T_cvar_handle handle{};
  int count = 0;
  if (index < 0 || MPI_T_cvar_handle_alloc(index, nullptr, &handle, &count) != MPI_SUCCESS) return;
  if (count == 1) act(handle);
  MPI_T_cvar_handle_free(&handle);
}

void set_variable(int index, int value) {
  with_variable(index, [&](MPI_T_cvar_handle handle) { MPI_T_cvar_write(handle, &value); });
}

// Not finalized: after that MPICH 4.0 finds no variable by its name again.
bool has_tools() {
  static const bool has = [] {
    int level = 0;
    return MPI_T_init_thread(MPI_THREAD_SINGLE, &level) == MPI_SUCCESS;
  }();
  return has;
}

std::string selection_of(std::string_view name) {
  return std::string(tuning::native_variant_prefix) + std::string(name);
}

std::string_view name_in(std::string_view selection) {
  return selection.substr(tuning::native_variant_prefix.size());
}

}  // namespace

#ifdef OMPI_MAJOR_VERSION

namespace {

int variable_of(Collective collective) {
  return index_of_variable("coll_tuned_" + tuning::lower(name_of(collective)) + "_algorithm");
}

}  // namespace

NativeVariants::NativeVariants(MPI_Comm world) : world_(world) {
  has_tools_ = has_tools();
}

NativeVariants::~NativeVariants() {
  for (auto& [which, communicator] : communicators_) PMPI_Comm_free(&communicator);
}

std::vector<std::string> NativeVariants::of(Collective collective, std::size_t /*bytes*/) const {
  std::vector<std::string> selections;
  if (!has_tools_ || quiet::maximum(variable_of(collective) < 0 ? 1 : 0, world_) > 0) return selections;
  int ranks = 0;
  PMPI_Comm_size(world_, &ranks);
  for (const std::string_view name : tuning::openmpi_alternatives(collective))
    // With any other number of ranks two_proc fails.
    if (name != "two_proc" || ranks == 2) selections.push_back(selection_of(name));
  return selections;
}

MPI_Comm NativeVariants::use(Collective collective, const std::string& selection) {
  if (!tuning::is_native_variant(selection)) return MPI_COMM_NULL;
  const auto [at, is_new] = communicators_.try_emplace({collective, selection}, MPI_COMM_NULL);
  if (!is_new) return at->second;
  // One of those in of().
  const std::size_t number = tuning::openmpi_library.find(collective, name_in(selection)).value();
  set_variable(variable_of(collective), static_cast<int>(number));
  PMPI_Comm_dup(world_, &at->second);
  set_variable(variable_of(collective), 0);
  return at->second;
}

#else

namespace {

int variable_of(Collective collective, const char* what) {
  std::string name(name_of(collective));
  for (char& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return index_of_variable("MPIR_CVAR_" + name + what);
}
int algorithm_of(Collective collective) {
  return variable_of(collective, "_INTRA_ALGORITHM");
}
int device_of(Collective collective) {
  return variable_of(collective, "_DEVICE_COLLECTIVE");
}

int number_of(Collective collective, std::string_view algorithm) {
  const int index = algorithm_of(collective);
  int name_length = 0;
  int length = 0;
  int ignored[3];
  MPI_Datatype type{};
  MPI_T_enum values{};
  const auto ask = [&](char* text) {
    return MPI_T_cvar_get_info(index, nullptr, &name_length, &ignored[0], &type, &values, text, &length, &ignored[1],
                               &ignored[2]) == MPI_SUCCESS;
  };
  if (index < 0 || !ask(nullptr)) return -1;
  std::string text(static_cast<std::size_t>(length), '\0');
  return ask(text.data()) ? tuning::mpich_number(text, algorithm) : -1;
}

// Whether MPICH sees several nodes, with several ranks on one of them.
bool has_node_communicators(MPI_Comm world) {
  MPI_Comm node = MPI_COMM_NULL;
  int ranks = 1;
  int here = 1;
  PMPI_Comm_size(world, &ranks);
  PMPI_Comm_split_type(world, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  PMPI_Comm_size(node, &here);
  PMPI_Comm_free(&node);
  return here < ranks && quiet::maximum(here, world) > 1;
}

}  // namespace

NativeVariants::NativeVariants(MPI_Comm world) : world_(world), has_node_communicators_(has_node_communicators(world)) {
  has_tools_ = has_tools();
}

NativeVariants::~NativeVariants() = default;

std::vector<std::string> NativeVariants::of(Collective collective, std::size_t bytes) const {
  std::vector<std::string> selections;
  int ranks = 0;
  PMPI_Comm_size(world_, &ranks);
  for (const std::string_view name : tuning::mpich_algorithms(collective)) {
    const tuning::MpichNeeds needs = tuning::mpich_needs(collective, name);
    const bool serves =
        has_tools_ && number_of(collective, name) > 0 && device_of(collective) >= 0 &&
        (!needs.power_of_two || std::has_single_bit(static_cast<unsigned>(ranks))) &&
        (!needs.several_nodes || has_node_communicators_) &&
        (!needs.many_elements || bytes / sizeof(double) >= std::bit_floor(static_cast<unsigned>(ranks)));
    if (quiet::maximum(serves ? 0 : 1, world_) == 0) selections.push_back(selection_of(name));
  }
  return selections;
}

MPI_Comm NativeVariants::use(Collective collective, const std::string& selection) {
  const auto [device, is_new] = device_.try_emplace(collective, 1);
  if (is_new)
    with_variable(device_of(collective), [&](MPI_T_cvar_handle handle) { MPI_T_cvar_read(handle, &device->second); });
  const bool is_variant = tuning::is_native_variant(selection);
  set_variable(algorithm_of(collective), is_variant ? number_of(collective, name_in(selection)) : 0);
  set_variable(device_of(collective), is_variant ? 0 : device->second);
  return MPI_COMM_NULL;
}

#endif

}  // namespace papaya::bench
