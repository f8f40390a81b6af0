#include "api/meeting.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include "algorithms/transport/mpi/mpi_transport.hpp"
#include "algorithms/transport/shared_notified.hpp"
#include "algorithms/transport/ucx/ucx_transport.hpp"
#include "api/process.hpp"
#include "base/log.hpp"
#include "interpose/make_wire.hpp"
#include "interpose/mpi_agreement.hpp"

namespace papaya::weak {

namespace {

bool all_agree(bool mine, MPI_Comm comm) {
  int good = mine ? 1 : 0;
  int all = 0;
  PMPI_Allreduce(&good, &all, 1, MPI_INT, MPI_MIN, comm);
  return all != 0;
}

bool is_loaded(const char* library) noexcept {
  void* const handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) return false;
  dlclose(handle);
  return true;
}

// Where libpapaya-ucx.so lies: beside this library.
std::string own_folder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(&own_folder), &info) == 0 || info.dli_fname == nullptr) return ".";
  return std::filesystem::path(info.dli_fname).parent_path().string();
}

constexpr std::size_t page_bytes = 4096;

}  // namespace

Meeting::Meeting(MPI_Comm comm, const Settings& settings) : comm_(comm) {
  PMPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  PMPI_Comm_rank(comm_, &rank_);
  PMPI_Comm_size(comm_, &ranks_);
  MPI_Comm node = MPI_COMM_NULL;  // its ranks on this node
  PMPI_Comm_split_type(comm_, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &node);
  if (const auto size = static_cast<int>(settings.number(Variable::node_size)); size > 0) {
    int index = 0;
    PMPI_Comm_rank(node, &index);
    MPI_Comm part = MPI_COMM_NULL;
    PMPI_Comm_split(node, index / size, rank_, &part);
    PMPI_Comm_free(&node);
    node = part;
  }
  int here = 1;
  PMPI_Comm_size(node, &here);
  is_on_one_node_ = all_agree(here == ranks_, comm_);
  start(node, settings);
  PMPI_Comm_free(&node);
}

Meeting::~Meeting() {
  wire_.reset();
  window_.free();
  if (transport_ != nullptr) transport_->close();
  PMPI_Comm_free(&comm_);
}

Error Meeting::agree(Error error) const {
  const int mine = error.is_set() ? rank_ : ranks_;
  int first = ranks_;
  PMPI_Allreduce(&mine, &first, 1, MPI_INT, MPI_MIN, comm_);
  if (first == ranks_) return {};
  int head[2] = {error.code, static_cast<int>(error.sentence.size())};
  PMPI_Bcast(head, 2, MPI_INT, first, comm_);
  error.code = head[0];
  error.sentence.resize(static_cast<std::size_t>(head[1]));
  PMPI_Bcast(error.sentence.data(), head[1], MPI_CHAR, first, comm_);
  return error;
}

Error Meeting::open(const SegmentShape& shape, std::size_t region_bytes, const Settings& settings) {
  if (is_on_one_node_ && share_memory(shape, region_bytes)) return {};
  if (region_bytes == 0) return connect(shape, settings);
  return {
      MPI_ERR_NO_MEM,
      fmt::format("there is no room in /dev/shm for {} bytes of shared memory, a quarter of what is free there; free "
                  "some, or choose an algorithm that works across nodes",
                  region_bytes)};
}

bool Meeting::share_memory(const SegmentShape& shape, std::size_t region_bytes) {
  const std::size_t wire_bytes = SharedNotified::region_bytes(ranks_, shape);
  const std::size_t bytes = wire_bytes + region_bytes;
  // Three quarters of a window are for regions.
  if (!window_.create(comm_, bytes / 2 * 3 + (std::size_t{1} << 20))) return false;
  std::int64_t offset = rank_ == 0 ? window_.allocate(bytes, ranks_, 0) : 0;
  PMPI_Bcast(&offset, 1, MPI_INT64_T, 0, comm_);
  // Also the barrier after which all of it is zero.
  if (!all_agree(offset >= 0 && window_.prepare_share(offset, bytes, rank_, ranks_), comm_)) {
    window_.free();
    return false;
  }
  std::byte* const begin = window_.region(offset);
  wire_ = std::make_unique<SharedNotified>(begin, rank_, policy(), shape);
  if (region_bytes != 0) region_ = begin + wire_bytes;
  return true;
}

Error Meeting::connect(const SegmentShape& shape, const Settings& settings) {
  const std::string_view wanted = settings.text(Variable::transport);
  const std::size_t bytes =
      shape.bytes + static_cast<std::size_t>(shape.notifications) * sizeof(std::uint64_t) + 4 * page_bytes;
  // UCX moves in calls of papaya's only: it has to be asked for where ranks are in MPI while others write to them.
  takes_ucx_ =
      all_agree(wanted == "ucx" || (wanted == "auto" && !shape.leaves_alone && is_loaded("libucp.so.0")), comm_);
  if (takes_ucx_) {
    std::string why;
    transport_ = UcxTransport::open(comm_, bytes, own_folder().c_str(), why);
    takes_ucx_ = transport_ != nullptr;
    if (!takes_ucx_ && rank_ == 0 && wanted == "ucx")
      log::warn(fmt::format("PAPAYA_TRANSPORT=ucx: {}; using MPI's messages.", why));
  }
  if (transport_ == nullptr) transport_ = MpiTransport::open(comm_, bytes);
  const Error no_memory{MPI_ERR_NO_MEM,
                        fmt::format("a rank has no memory for the {} bytes that others write to; create "
                                    "it for fewer elements or with less slack",
                                    bytes)};
  if (transport_ == nullptr) return no_memory;
  std::vector<int> members(static_cast<std::size_t>(ranks_));
  std::iota(members.begin(), members.end(), 0);
  std::vector<std::int64_t> offsets(members.size());
  MpiAgreement agreement(comm_, MpiAgreement::Way::waiting, transport_.get(), comm_);
  MadeWire made;
  Steps steps = make_wire({*transport_, members, policy(), shape}, agreement, offsets, made);
  agreement.finish(steps);
  if (made.wire == nullptr)
    return made.failure == Reason::no_shared_memory
               ? no_memory
               : Error{MPI_ERR_OTHER, "some ranks do not reach each other by UCX; set PAPAYA_TRANSPORT=mpi"};
  wire_ = std::move(made.wire);
  return {};
}

Team Meeting::team() const {
  return {.rank = rank_,
          .size = ranks_,
          .arrival_order = false,
          .region = region_,
          .policy = &policy(),
          .wire = wire_.get()};
}

// What MPI sends goes on in any later call of MPI's, as a nonblocking send does: to wait for it here would make this
// rank wait for its receivers. A moment is enough for all but large messages. UCX moves in calls of papaya's only.
void Meeting::leave_call(std::size_t bytes) noexcept {
  if (wire_ == nullptr || wire_->may_leave()) return;
  if (takes_ucx_) return wire_->leave();
  policy().is_soon(
      [this] {
        wire_->progress();
        return wire_->may_leave();
      },
      bytes);
}

}  // namespace papaya::weak
