#include "api/meeting.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <new>
#include <numeric>
#include <string>
#include <vector>

#include "algorithms/transport/mpi/mpi_out_of_band.hpp"
#include "algorithms/transport/mpi/mpi_transport.hpp"
#include "algorithms/transport/shared_notified.hpp"
#include "algorithms/transport/ucx/ucx_transport.hpp"
#include "api/process.hpp"
#include "base/log.hpp"
#include "base/memory.hpp"
#include "interpose/make_wire.hpp"
#include "interpose/mpi_agreement.hpp"

namespace papaya::weak {

namespace {

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

Meeting::Meeting(MPI_Comm comm) : comm_(comm) {
  PMPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  PMPI_Comm_rank(comm_, &rank_);
  PMPI_Comm_size(comm_, &ranks_);
}

void Meeting::agree(Terms& terms, Settings& settings) {
  terms.birth = Birth::now();
  terms.node_size = static_cast<std::uint64_t>(settings.number(Variable::node_size));
  terms.transport = settings.text(Variable::transport);
  terms.shared_bytes = memory::available_shared() / 4;
  // Before it is known whether it is needed: an empty file costs less than another exchange.
  terms.has_segment = rank_ == 0 && terms.is_good && segment_.create(terms.birth.name());
  terms.has_started = has_started();
  terms.has_ucx = is_loaded("libucp.so.0");
  terms.agree(comm_, number_of_node());

  settings.set(Variable::node_size, fmt::format("{}", terms.node_size));
  settings.set(Variable::transport, terms.transport);
  node_size_ = static_cast<int>(terms.node_size);
  const std::uint64_t ranks_of_node = terms.node_size == 0 ? ~std::uint64_t{0} : terms.node_size;
  is_on_one_node_ = terms.is_same_node && static_cast<std::uint64_t>(ranks_) <= ranks_of_node;
  if (is_on_one_node_ && terms.has_segment)
    name_ = terms.birth.name();
  else
    segment_.forget_name();
  shared_bytes_ = terms.shared_bytes;
  wants_ucx_ = terms.transport == "ucx";
  has_ucx_ = terms.transport == "auto" && terms.has_ucx;
  if (!terms.has_started) start_process(settings);
}

// Where one rank has not done so yet, on all.
void Meeting::start_process(const Settings& settings) {
  MPI_Comm node = split_node();
  start(node, settings);
  PMPI_Comm_free(&node);
}

MPI_Comm Meeting::split_node() const {
  MPI_Comm node = MPI_COMM_NULL;
  PMPI_Comm_split_type(comm_, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &node);
  if (node_size_ == 0) return node;
  int index = 0;
  PMPI_Comm_rank(node, &index);
  MPI_Comm part = MPI_COMM_NULL;
  PMPI_Comm_split(node, index / node_size_, rank_, &part);
  PMPI_Comm_free(&node);
  return part;
}

const Nodes& Meeting::find_nodes() {
  node_ = split_node();
  int first = rank_;
  PMPI_Bcast(&first, 1, MPI_INT, 0, node_);
  std::vector<int> firsts(static_cast<std::size_t>(ranks_));
  PMPI_Allgather(&first, 1, MPI_INT, firsts.data(), 1, MPI_INT, comm_);
  nodes_ = nodes_by(firsts);
  return nodes_;
}

Meeting::~Meeting() {
  leaver_.reset();
  wire_.reset();
  window_.free();
  if (transport_ != nullptr) transport_->close();
  if (node_ != MPI_COMM_NULL) PMPI_Comm_free(&node_);
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

int Meeting::least(int mine) const {
  int all = 0;
  PMPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, comm_);
  return all;
}

bool Meeting::share_memory(const SegmentShape& shape, std::size_t region_bytes) {
  const std::size_t wire_bytes = SharedNotified::region_bytes(ranks_, shape);
  const std::size_t bytes = wire_bytes + region_bytes;
  if (name_.empty() || bytes > shared_bytes_ || !segment_.open(name_, bytes, rank_, ranks_)) return false;
  wire_ = std::make_unique<SharedNotified>(segment_.begin(), rank_, policy(), shape);
  if (region_bytes != 0) region_ = segment_.begin() + wire_bytes;
  return true;
}

bool Meeting::share_region(std::size_t bytes) {
  int rank = 0;
  int ranks = 1;
  PMPI_Comm_rank(node_, &rank);
  PMPI_Comm_size(node_, &ranks);
  // Three quarters of a window are for regions.
  MpiOutOfBand node(node_);
  if (!window_.create(node, node_, {}, bytes / 2 * 3 + (std::size_t{1} << 20))) return false;
  std::int64_t offset = rank == 0 ? window_.allocate(bytes, ranks, 0) : 0;
  PMPI_Bcast(&offset, 1, MPI_INT64_T, 0, node_);
  // What each rank has made zero the others use once all have agreed on this outcome.
  if (offset < 0 || !window_.prepare_share(offset, bytes, rank, ranks)) return false;
  region_ = window_.region(offset);
  return true;
}

Error Meeting::connect(const SegmentShape& shape, OnFailure on_failure) {
  const std::size_t bytes =
      shape.bytes + static_cast<std::size_t>(shape.notifications) * sizeof(std::uint64_t) + 4 * page_bytes;
  // UCX moves in calls of papaya's only: it has to be asked for where ranks are in MPI while others write to them.
  leaves_alone_ = shape.leaves_alone;
  takes_ucx_ = wants_ucx_ || (has_ucx_ && !shape.leaves_alone);
  if (takes_ucx_) {
    std::string why;
    transport_ = UcxTransport::open(comm_, bytes, own_folder().c_str(), why, on_failure);
    takes_ucx_ = transport_ != nullptr;
    if (!takes_ucx_ && rank_ == 0 && wants_ucx_)
      log::warn(fmt::format("PAPAYA_TRANSPORT=ucx: {}; using MPI's messages.", why));
  }
  if (transport_ == nullptr) transport_ = MpiTransport::open(comm_, bytes, true, on_failure);
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
// rank wait for its receivers. A moment is enough for all but large messages. UCX moves in papaya only: where ranks are
// in MPI while others write to them, what is left is a thread's.
void Meeting::leave_call(std::size_t bytes) noexcept {
  if (wire_ == nullptr || wire_->may_leave()) return;
  if (takes_ucx_ && !leaves_alone_) return wire_->leave();
  bool has_left = false;
  policy().is_soon(
      [&] {
        wire_->progress();
        return has_left = wire_->may_leave();
      },
      bytes);
  if (has_left || !takes_ucx_) return;
  if (leaver_ == nullptr) leaver_.reset(new (std::nothrow) Leaver(*wire_));
  if (leaver_ == nullptr || !leaver_->see_off()) wire_->leave();
}

}  // namespace papaya::weak
