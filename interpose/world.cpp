#include "interpose/world.hpp"

#include <atomic>

#include "base/topology.hpp"
#include "interpose/copy_communicator.hpp"
#include "interpose/mpi_features.hpp"

namespace papaya::world {

#if PAPAYA_HAS_MPI_4

namespace {

struct OfSessions {
  MPI_Session session = MPI_SESSION_NULL;  // papaya's own
  MPI_Group group = MPI_GROUP_NULL;        // mpi://WORLD
  MPI_Comm comm = MPI_COMM_NULL;           // null: the job is that of MPI_COMM_WORLD
};
OfSessions sessions;

// A thread that finds no place is heard once it begins the job itself.
constexpr int offers_count = 8;
std::atomic<MPI_Comm> offers[offers_count] = {MPI_COMM_NULL, MPI_COMM_NULL, MPI_COMM_NULL, MPI_COMM_NULL,
                                              MPI_COMM_NULL, MPI_COMM_NULL, MPI_COMM_NULL, MPI_COMM_NULL};

bool has_all(MPI_Comm comm) noexcept {
  int is_inter = 0;
  if (PMPI_Comm_test_inter(comm, &is_inter) != MPI_SUCCESS || is_inter != 0) return false;
  MPI_Group group = MPI_GROUP_NULL;
  if (PMPI_Comm_group(comm, &group) != MPI_SUCCESS) return false;
  int result = MPI_UNEQUAL;
  PMPI_Group_compare(group, sessions.group, &result);
  PMPI_Group_free(&group);
  return result == MPI_IDENT;
}

}  // namespace

Offer::Offer(MPI_Comm comm) noexcept {
  for (MPI_Comm none = MPI_COMM_NULL; place_ < offers_count; ++place_, none = MPI_COMM_NULL)
    if (offers[place_].compare_exchange_strong(none, comm, std::memory_order_acq_rel)) return;
}

Offer::~Offer() {
  if (place_ < offers_count) offers[place_].store(MPI_COMM_NULL, std::memory_order_release);
}

std::vector<MPI_Comm> comms() {
  std::vector<MPI_Comm> found{comm()};
  if (!is_of_sessions()) return found;
  for (const std::atomic<MPI_Comm>& offer : offers)
    if (MPI_Comm other = offer.load(std::memory_order_acquire);
        other != MPI_COMM_NULL && other != found[0] && has_all(other))
      found.push_back(other);
  return found;
}

MPI_Comm comm() noexcept {
  return is_of_sessions() ? sessions.comm : MPI_COMM_WORLD;
}

bool is_of_sessions() noexcept {
  return sessions.comm != MPI_COMM_NULL;
}

bool copy(MPI_Comm* copy) noexcept {
  if (!is_of_sessions()) return copy_communicator(MPI_COMM_WORLD, copy);
  if (PMPI_Comm_create_from_group(sessions.group, "papaya.job", MPI_INFO_NULL, MPI_ERRORS_RETURN, copy) != MPI_SUCCESS)
    return false;
  sessions.comm = *copy;
  return true;
}

bool take(MPI_Comm comm) noexcept {
  if (sessions.session == MPI_SESSION_NULL &&
      PMPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &sessions.session) != MPI_SUCCESS)
    return false;
  if (sessions.group == MPI_GROUP_NULL &&
      PMPI_Group_from_session_pset(sessions.session, "mpi://WORLD", &sessions.group) != MPI_SUCCESS)
    return false;
  if (!has_all(comm)) return false;
  sessions.comm = comm;
  topology::keep_plugins();  // MPI_Init may follow the last session
  return true;
}

void leave() noexcept {
  sessions.comm = MPI_COMM_NULL;
  if (sessions.group != MPI_GROUP_NULL) PMPI_Group_free(&sessions.group);
  if (sessions.session != MPI_SESSION_NULL) PMPI_Session_finalize(&sessions.session);
}

#else

MPI_Comm comm() noexcept {
  return MPI_COMM_WORLD;
}
std::vector<MPI_Comm> comms() {
  return {MPI_COMM_WORLD};
}
bool is_of_sessions() noexcept {
  return false;
}
bool copy(MPI_Comm* copy) noexcept {
  return copy_communicator(MPI_COMM_WORLD, copy);
}
bool take(MPI_Comm) noexcept {
  return false;
}
void leave() noexcept {}

#endif

}  // namespace papaya::world
