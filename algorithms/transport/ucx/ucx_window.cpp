#include "algorithms/transport/ucx/ucx_window.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <new>

#include "algorithms/transport/transport.hpp"
#include "base/last_words.hpp"
#include "base/version.hpp"

namespace papaya {

namespace {

bool agree(bool good, MPI_Comm comm) noexcept {
  int mine = good ? 1 : 0;
  int all = 0;
  return PMPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, comm) == MPI_SUCCESS && all == 1;
}

// What UCX reads from the environment when it is loaded and opened, for as long as that takes: what the user has set
// stays, and the program and what it starts see nothing of it.
class WhileOpening {
 public:
  explicit WhileOpening(UcxEnvironment environment) noexcept {
    for (Setting& setting : settings_) {
      setting.ours = environment == UcxEnvironment::set_for_a_moment && std::getenv(setting.name) == nullptr;
      if (setting.ours) setenv(setting.name, setting.value, 0);
    }
  }
  ~WhileOpening() {
    for (const Setting& setting : settings_)
      if (setting.ours) unsetenv(setting.name);
  }
  WhileOpening(const WhileOpening&) = delete;
  WhileOpening& operator=(const WhileOpening&) = delete;

 private:
  struct Setting {
    const char* name;
    const char* value;
    bool ours;
  };
  Setting settings_[4] = {
      {"UCX_ERROR_SIGNALS", "", false},  // handlers of SIGSEGV and the like, which are the program's
      {"UCX_DEBUG_SIGNO", "0", false},   // one of SIGHUP
      {"UCX_VFS_ENABLE", "n", false},    // a thread that watches for its monitor
      // Receives of more than 64 KiB, and so the plugin's messages in one piece. (ucp_config_modify does not reach it.)
      {"UCX_TCP_RX_SEG_SIZE", "280k", false},
  };
};

}  // namespace

// In the order of what rank 0 says, if several fail.
enum class UcxWindow::Failure : int { none, unreachable, not_opened, other_version, not_loaded };

UcxWindow::Failure UcxWindow::open(std::size_t bytes, const char* folder, std::string& why, OnFailure on_failure,
                                   UcxEnvironment environment) noexcept try {
  const std::string path = fmt::format("{}/libpapaya-ucx.so", folder);
  if (access(path.c_str(), R_OK) != 0) {
    why = fmt::format("there is no libpapaya-ucx.so in {}, which is built where UCX is installed", folder);
    return Failure::not_loaded;
  }
  void* const ucs = dlopen("libucs.so.0", RTLD_LAZY | RTLD_NOLOAD);
  if (ucs != nullptr) dlclose(ucs);
  const WhileOpening settings(environment);
  void* const plugin = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (plugin == nullptr) {
    why = dlerror();
    return Failure::not_loaded;
  }
  // Never unloaded: UCX leaves threads and exit handlers behind.
  const auto version = static_cast<const ucx::Version*>(dlsym(plugin, "papaya_ucx_version"));
  const auto open = reinterpret_cast<ucx::Open>(dlsym(plugin, "papaya_ucx_open"));
  if (version == nullptr || open == nullptr || std::strcmp(*version, PAPAYA_VERSION) != 0) {
    why = fmt::format("{} is of another version than papaya ({}); install both from one build", path, PAPAYA_VERSION);
    return Failure::other_version;
  }
  if (!arena_.reserve(bytes)) {
    why = "out of memory";
    return Failure::not_opened;
  }
  const ucx::Options options{rank_, ranks_, arena_.bytes(), on_failure == OnFailure::lose_peer, ucs != nullptr};
  const char* reason = nullptr;
  worker_.reset(open(&options, &reason));
  if (worker_ == nullptr) {
    why = fmt::format("UCX cannot be started here: {}", reason);
    return Failure::not_opened;
  }
  return Failure::none;
} catch (const std::bad_alloc&) {
  return Failure::not_opened;
}

bool UcxWindow::exchange_addresses() noexcept {
  bool good = true;
  const int mine = static_cast<int>(worker_->address_bytes());
  std::vector<int> bytes;
  try {
    bytes.resize(static_cast<std::size_t>(ranks_));
    address_offsets_.assign(static_cast<std::size_t>(ranks_) + 1, 0);
  } catch (const std::bad_alloc&) {
    good = false;
  }
  if (!agree(good, world_)) return false;
  PMPI_Allgather(&mine, 1, MPI_INT, bytes.data(), 1, MPI_INT, world_);
  for (std::size_t i = 0; i < bytes.size(); ++i) address_offsets_[i + 1] = address_offsets_[i] + bytes[i];
  try {
    addresses_.resize(static_cast<std::size_t>(address_offsets_.back()));
  } catch (const std::bad_alloc&) {
    good = false;
  }
  if (!agree(good, world_)) return false;
  return PMPI_Allgatherv(worker_->address(), mine, MPI_BYTE, addresses_.data(), bytes.data(), address_offsets_.data(),
                         MPI_BYTE, world_) == MPI_SUCCESS;
}

bool UcxWindow::create(MPI_Comm world, std::size_t bytes, const char* folder, std::string& why, OnFailure on_failure,
                       UcxEnvironment environment) noexcept {
  world_ = world;
  PMPI_Comm_rank(world, &rank_);
  PMPI_Comm_size(world, &ranks_);
  int mine = static_cast<int>(open(bytes, folder, why, on_failure, environment));
  int worst = 0;
  PMPI_Allreduce(&mine, &worst, 1, MPI_INT, MPI_MAX, world);
  if (worst == 0) {
    // Each to the next: whether UCX reaches anybody at all shows now, where there is still another way.
    bool good = exchange_addresses();
    if (good) good = connect({rank_, (rank_ + 1) % ranks_}, world);
    if (good) {
      arena_.set_base(worker_->memory());
      return true;
    }
    worst = static_cast<int>(Failure::unreachable);
    why = "UCX does not reach every rank; UCX_TLS and UCX_NET_DEVICES say what it may use";
  } else if (mine == 0) {
    why = "other ranks than this one cannot load or start UCX";
  }
  if (worker_ != nullptr) {
    worker_->close();
    worker_.reset();
  }
  return false;
}

void UcxWindow::wait_for(MPI_Request& request) noexcept {
  for (int complete = 0; complete == 0;) {
    worker_->progress();
    if (PMPI_Test(&request, &complete, MPI_STATUS_IGNORE) != MPI_SUCCESS) return;
    if (complete == 0) sched_yield();
  }
}

Link UcxWindow::begin_connecting(const std::vector<int>& members) noexcept {
  bool good = true;
  for (const int member : members) {
    const int at = address_offsets_[static_cast<std::size_t>(member)];
    if (member != rank_ &&
        !worker_->connect(member, addresses_.data() + at,
                          static_cast<std::size_t>(address_offsets_[static_cast<std::size_t>(member) + 1] - at)))
      good = false;
  }
  return good ? link(members) : Link::refused;
}

Link UcxWindow::link(const std::vector<int>& members) noexcept {
  Link all = Link::up;
  for (const int member : members) {
    if (member == rank_) continue;
    const Link one = worker_->link(member);
    if (one == Link::refused) return one;
    if (one == Link::under_way) all = one;
  }
  return all;
}

bool UcxWindow::connect(const std::vector<int>& members, MPI_Comm comm) noexcept {
  Link reached = begin_connecting(members);
  const auto until = std::chrono::steady_clock::now() + Transport::longest_connecting;
  while (reached == Link::under_way) {
    reached = !worker_->progress() || std::chrono::steady_clock::now() > until ? Link::refused : link(members);
    int found = 0;
    PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, world_, &found, MPI_STATUS_IGNORE);
    sched_yield();
  }
  const int good = reached == Link::up ? 1 : 0;
  int all = 0;
  MPI_Request request = MPI_REQUEST_NULL;
  if (PMPI_Iallreduce(&good, &all, 1, MPI_INT, MPI_MIN, comm, &request) != MPI_SUCCESS) return false;
  wait_for(request);
  return all == 1;
}

void UcxWindow::end_after_failure() noexcept {
  // If the rank has died, its launcher knows better than this one what to say, and is about to.
  sleep(1);
  log::last_words(
      fmt::format("rank {} cannot reach rank {} over UCX any more ({}) in the middle of a collective; the job "
                  "cannot go on. If both still run, try PAPAYA_TRANSPORT=mpi.",
                  rank_, worker_->failed_peer(), worker_->failure()));
  PMPI_Abort(world_, MPI_ERR_OTHER);
  std::abort();
}

void UcxWindow::free() noexcept {
  if (!exists()) return;
  arena_.set_base(nullptr);
  // All have had what they wait for. Closed while all still progress, and gone once all have closed.
  const auto meet = [&] {
    MPI_Request request = MPI_REQUEST_NULL;
    if (PMPI_Ibarrier(world_, &request) == MPI_SUCCESS) wait_for(request);
  };
  meet();
  while (!worker_->close()) {
    worker_->progress();
    int found = 0;
    PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, world_, &found, MPI_STATUS_IGNORE);
    sched_yield();
  }
  meet();
  worker_.reset();
}

}  // namespace papaya
