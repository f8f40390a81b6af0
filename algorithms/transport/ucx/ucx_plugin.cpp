// libpapaya-ucx.so: writes and notifications by UCX, in one of two ways.
//
// Puts, where the transport has them (RDMA, shared memory). The data go by ucp_put_nbx, the notification by
// another of eight aligned bytes, and between them is ucp_worker_fence, which says that what was issued to an
// endpoint before it is completed before what is issued after it. UCX picks what that takes: nothing where
// both take one ordered way, a store fence in shared memory, a flush where puts may take several. It also
// holds where a flush does not: with relaxed ordering on the target's PCI bus a flush says that data have
// been accepted, not that they can be seen (UCX's own fence was changed for that). Eight aligned bytes are
// never seen in part: a network adapter writes them at once, and where UCX copies it is memcpy of eight
// bytes, one store. Hence no atomic operation, which may take another way than the data.
//
// Active messages, over TCP, where UCX 1.13 makes each put of messages of 8 KiB, with an answer to each (1
// MiB there and back between two ranks: 3.5 ms by puts). A message says where its data go and what to notify
// of, and the receiver's progress does so, in this order. Messages are numbered and checked: UCX has an
// endpoint's eager messages take one stream.
//
// Leaving. A write may be complete for UCX when it lies in a buffer of this process. If the socket is full,
// the rest is sent by this process's progress, of which there is none once its rank has left the collective
// and sits in MPI_Recv, say for the rank that waits for the rest. So a rank has outstanding writes: those that UCX
// has queued, and peers with more bytes on their way, as far as it knows, than a socket takes for certain. What
// it knows of puts it has from flushes, begun at half that limit and waited for by nobody; of messages from
// the peer's own, each of which says how many have come: so small ones cost nothing more. Outstanding
// messages are completed by another, empty one: UCX takes a message for a TCP endpoint
// when the system has taken all before it. Outstanding puts are completed when a flush has ended, which may need the
// peer's progress: it is there, or will come, for these very bytes. It need not stay for later answers; so
// the flush is begun with the bytes that make it necessary, and those remain outside. UCX's own answers,
// which let the peer's flush end, may be queued behind this rank's bytes: once those have come there is room,
// and a last progress (drain) sends them.
//
// UCX's hooks: UCX_MEM_* and the like stay as they are; see ucx_window.cpp for what is set while it is
// loaded.

#include "algorithms/transport/ucx/ucx_plugin.hpp"

#include <poll.h>
#include <ucp/api/ucp.h>
#include <ucs/debug/log_def.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "base/version.hpp"

namespace papaya::ucx {

namespace {

// Taken by any socket at once: Linux gives a connected one room for more.
constexpr std::size_t most_unflushed_bytes = 16384;
constexpr std::size_t header_bytes = 128;  // of a put or message, generously
constexpr unsigned message_id = 0;
constexpr std::size_t most_message_bytes = 262144;  // with its header it fits UCX's buffer for TCP; see ucx_window.cpp
constexpr std::size_t records_at_once = 64;
constexpr std::uint64_t longest_sleep_with_puts_ns = 200'000;  // nothing tells of a put

// ---- what UCX says

thread_local int inside = 0;  // calls of this file on this thread
bool others_use_ucx = false;
bool user_wants_messages = false;

// UCX writes warnings to standard output, into the program's. What papaya has to say of a failure it says
// itself.
ucs_log_func_rc_t hear(const char*, unsigned, const char*, ucs_log_level_t, const ucs_log_component_config_t*,
                       const char*, va_list) {
  const bool ours = inside != 0 || !others_use_ucx;
  return ours && !user_wants_messages ? UCS_LOG_FUNC_RC_STOP : UCS_LOG_FUNC_RC_CONTINUE;
}

// ---- addresses

// Of what a rank must know of another. Followed by the worker's address and the memory's key.
struct AddressHead {
  std::uint64_t memory;  // its address
  std::uint64_t address_bytes;
};

class UcpWorker;

// So many bytes had been written with this message.
struct Mark {
  std::uint64_t serial;
  std::uint64_t written;
};
constexpr std::size_t most_marks = 16;

struct Peer {
  UcpWorker* owner = nullptr;
  int rank = -1;
  ucp_ep_h endpoint = nullptr;
  ucp_rkey_h key = nullptr;
  std::uint64_t memory = 0;     // its address there
  std::uint64_t written = 0;    // bytes so far, headers too
  std::uint64_t flushed = 0;    // of them: have come
  std::uint64_t flushing = 0;   // of them, once all flushes under way have ended
  std::uint64_t completed = 0;  // of them, once all that is queued has gone
  std::uint32_t queued = 0;     // numbers that UCX has not let go
  std::uint64_t sent = 0;       // messages, and
  std::uint64_t received = 0;   // from it
  std::vector<Mark> marks;      // of messages that it has not said to have received; never grows
  Link link = Link::under_way;
  bool by_messages = false;
  bool is_lost = false;  // what is done with it counts no more
};

constexpr std::uint64_t no_flag = ~std::uint64_t{0};

// Of an active message. An empty one without a flag says nothing.
struct Header {
  std::uint64_t serial;    // of the sender's to this receiver, from 1
  std::uint64_t received;  // of the receiver's to this sender, so far
  std::uint64_t offset;
  std::uint64_t flag_offset;  // or no_flag
  std::uint64_t value;
  std::int64_t sender;
};

// What UCX is doing: a put or message with data, one without, or a flush.
struct Request {
  Peer* peer;               // null: unused
  Sources* sources;         // of data; else null
  std::uint64_t number;     // of the notification that is put, or how many bytes the flush is of
  Header header;            // of a message
  bool is_counted = false;  // where it is of data in its sources, else in those queued
};

// UCX 1.13 tells nobody what an endpoint stands on but those who read its description: one line for each way,
// "lane[0]: 1:tcp/eth0.0 ...". Where that is not understood puts do as well.
bool has_tcp_only(ucp_ep_h endpoint) noexcept {
  char* text = nullptr;
  std::size_t bytes = 0;
  FILE* const stream = open_memstream(&text, &bytes);
  if (stream == nullptr) return false;
  ucp_ep_print_info(endpoint, stream);
  fclose(stream);
  int lanes = 0;
  int by_tcp = 0;
  for (char* lane = strstr(text, "lane["); lane != nullptr; lane = strstr(lane + 1, "lane[")) {
    ++lanes;
    if (const char* const way = strstr(lane, ":tcp/"); way != nullptr && way < lane + strcspn(lane, "\n")) ++by_tcp;
  }
  free(text);
  return lanes != 0 && lanes == by_tcp;
}

class UcpWorker final : public Worker {
 public:
  ~UcpWorker() override;
  const char* open(const Options& options);  // throws std::bad_alloc

  std::byte* memory() const noexcept override { return memory_; }
  const std::byte* address() const noexcept override { return address_.data(); }
  std::size_t address_bytes() const noexcept override { return address_.size(); }

  bool connect(int rank, const std::byte* address, std::size_t bytes) noexcept override;
  Link link(int rank) noexcept override;
  bool write(int rank, std::size_t offset, const void* source, std::size_t bytes, std::size_t flag_offset,
             std::uint64_t value, Sources& sources, Outstanding& outstanding) noexcept override;
  bool is_needed(const Sources& sources) noexcept override;
  Outstanding outstanding(int rank) noexcept override;
  bool drain() noexcept override;
  bool progress() noexcept override;
  bool sleep(std::uint64_t nanoseconds) noexcept override;
  bool is_lost(int rank) noexcept override;
  void lose(int rank) noexcept override;
  int failed_peer() noexcept override;
  const char* failure() noexcept override;
  bool close() noexcept override;

 private:
  // One thread at a time, and UCX's messages during it are this file's.
  class Turn {
   public:
    explicit Turn(std::unique_lock<std::mutex> lock) : lock_(std::move(lock)) { ++inside; }
    explicit Turn(std::mutex& mutex) : Turn(std::unique_lock(mutex)) {}
    ~Turn() { --inside; }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    const std::unique_lock<std::mutex> lock_;
  };

  void fail(int rank, ucs_status_t status) noexcept;
  void give_up(Peer& to) noexcept;
  void flush(Peer& to) noexcept;
  void end_flush(Request& record, ucs_status_t status) noexcept;
  Outstanding outstanding_of(const Peer& to) const noexcept;
  // One of both kinds; false, with the failure noted, if UCX does not take it.
  bool put(Peer& to, std::size_t offset, const void* source, std::size_t bytes, Sources& sources) noexcept;
  bool put(Peer& to, std::size_t offset, std::uint64_t number) noexcept;
  bool put(Request* record, std::size_t offset, const void* source, std::size_t bytes, std::uint32_t& queued) noexcept;
  bool send(Peer& to, std::size_t offset, const std::byte* source, std::size_t bytes, std::size_t flag_offset,
            std::uint64_t value, Sources& sources) noexcept;
  Request* take_record() noexcept;
  void give_back(Request& record) noexcept;
  void count(Request& record, std::uint32_t& as) noexcept;

  static void on_failure(void* peer, ucp_ep_h, ucs_status_t status);
  static ucs_status_t on_message(void* self, const void* header, size_t size, void* data, size_t bytes,
                                 const ucp_am_recv_param_t* parameters);
  static void on_put(void* request, ucs_status_t status, void* data);
  static void on_flush(void* request, ucs_status_t status, void* data);
  static void on_close(void* request, ucs_status_t status, void* closes);

  std::mutex mutex_;  // guards all that follows, once the worker is open
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  ucp_mem_h registration_ = nullptr;
  std::byte* memory_ = nullptr;
  std::size_t memory_bytes_ = 0;
  int own_rank_ = 0;
  std::vector<std::byte> address_;
  std::vector<Peer> peers_;  // by rank
  // As many as were ever queued at once, which an algorithm's acknowledgements bound.
  std::deque<Request> records_;
  std::vector<Request*> unused_records_;
  bool puts_ = false;  // to some peer
  int events_ = -1;    // readable once something comes; -1: nothing tells
  int closes_under_way_ = 0;
  bool closing_ = false;
  bool loses_peers_ = false;
  bool failed_ = false;
  int failed_peer_ = -1;
  ucs_status_t failure_ = UCS_OK;
};

// ---- set-up

const char* UcpWorker::open(const Options& options) {
  const Turn turn(mutex_);
  ucp_config_t* config = nullptr;
  if (const ucs_status_t s = ucp_config_read(nullptr, nullptr, &config); s != UCS_OK) return ucs_status_string(s);
  ucp_params_t parameters{};
  parameters.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS | UCP_PARAM_FIELD_NAME;
  parameters.features = UCP_FEATURE_RMA | UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  parameters.estimated_num_eps = static_cast<std::size_t>(options.ranks);
  parameters.name = "papaya";
  const ucs_status_t initialised = ucp_init(&parameters, config, &context_);
  ucp_config_release(config);
  if (initialised != UCS_OK) return ucs_status_string(initialised);

  // One lock of papaya's own instead of UCX's: that spins, and who holds it may have lost its core.
  ucp_worker_params_t worker{};
  worker.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  worker.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  if (const ucs_status_t s = ucp_worker_create(context_, &worker, &worker_); s != UCS_OK) return ucs_status_string(s);
  if (ucp_worker_get_efd(worker_, &events_) != UCS_OK) events_ = -1;

  ucp_am_handler_param_t handler{};
  handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
  handler.id = message_id;
  handler.cb = on_message;
  handler.arg = this;
  if (const ucs_status_t s = ucp_worker_set_am_recv_handler(worker_, &handler); s != UCS_OK)
    return ucs_status_string(s);

  // Memory of UCX's choice rather than papaya's: ranks of one machine then write into it directly.
  ucp_mem_map_params_t map{};
  map.field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_FLAGS;
  map.length = options.bytes;
  map.flags = UCP_MEM_MAP_ALLOCATE;
  if (const ucs_status_t s = ucp_mem_map(context_, &map, &registration_); s != UCS_OK) return ucs_status_string(s);
  ucp_mem_attr_t attributes{};
  attributes.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS;
  if (const ucs_status_t s = ucp_mem_query(registration_, &attributes); s != UCS_OK) return ucs_status_string(s);
  memory_ = static_cast<std::byte*>(attributes.address);
  memory_bytes_ = options.bytes;
  own_rank_ = options.rank;
  loses_peers_ = options.loses_peers;

  peers_.resize(static_cast<std::size_t>(options.ranks));
  for (int rank = 0; rank < options.ranks; ++rank) {
    peers_[static_cast<std::size_t>(rank)].owner = this;
    peers_[static_cast<std::size_t>(rank)].rank = rank;
    peers_[static_cast<std::size_t>(rank)].marks.reserve(most_marks);
  }
  ucp_address_t* address = nullptr;
  std::size_t address_bytes = 0;
  if (const ucs_status_t s = ucp_worker_get_address(worker_, &address, &address_bytes); s != UCS_OK)
    return ucs_status_string(s);
  void* key = nullptr;
  std::size_t key_bytes = 0;
  const ucs_status_t packed = ucp_rkey_pack(context_, registration_, &key, &key_bytes);
  if (packed == UCS_OK) {
    const AddressHead head{reinterpret_cast<std::uintptr_t>(memory_), address_bytes};
    address_.resize(sizeof head + address_bytes + key_bytes);
    std::memcpy(address_.data(), &head, sizeof head);
    std::memcpy(address_.data() + sizeof head, address, address_bytes);
    std::memcpy(address_.data() + sizeof head + address_bytes, key, key_bytes);
    ucp_rkey_buffer_release(key);
  }
  ucp_worker_release_address(worker_, address);
  return packed == UCS_OK ? nullptr : ucs_status_string(packed);
}

bool UcpWorker::connect(int rank, const std::byte* address, std::size_t bytes) noexcept {
  const Turn turn(mutex_);
  Peer& to = peers_[static_cast<std::size_t>(rank)];
  if (to.endpoint != nullptr) return to.link != Link::refused;
  AddressHead head{};
  if (bytes < sizeof head) return false;
  std::memcpy(&head, address, sizeof head);
  if (head.address_bytes > bytes - sizeof head) return false;
  ucp_ep_params_t parameters{};
  // No UCP_ERR_HANDLING_MODE_PEER, for which UCX gives up shared memory. It tells of connections that break
  // without it, and of a rank that is gone the launcher knows anyway.
  parameters.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLER;
  parameters.address = reinterpret_cast<const ucp_address_t*>(address + sizeof head);
  parameters.err_handler = {on_failure, &to};
  if (ucp_ep_create(worker_, &parameters, &to.endpoint) != UCS_OK) {
    to.endpoint = nullptr;
    return false;
  }
  if (ucp_ep_rkey_unpack(to.endpoint, address + sizeof head + head.address_bytes, &to.key) != UCS_OK) return false;
  to.memory = head.memory;
  // A flush ends once the endpoint is wired up.
  to.written = 1;
  flush(to);
  return !failed_ && to.link != Link::refused;
}

Link UcpWorker::link(int rank) noexcept {
  const Turn turn(mutex_);
  Peer& to = peers_[static_cast<std::size_t>(rank)];
  if (to.link != Link::under_way || to.flushed == 0) return to.link;
  to.link = Link::up;
  to.by_messages = has_tcp_only(to.endpoint);
  puts_ = puts_ || !to.by_messages;
  return to.link;
}

bool UcpWorker::close() noexcept {
  const Turn turn(mutex_);
  if (!closing_) {
    closing_ = true;
    for (Peer& to : peers_) {
      if (to.key != nullptr) ucp_rkey_destroy(to.key);
      to.key = nullptr;
      // One that is not up would never have closed; it ends with the worker.
      if (to.endpoint == nullptr || to.link != Link::up) continue;
      ucp_request_param_t parameters{};
      parameters.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
      parameters.cb.send = on_close;
      parameters.user_data = &closes_under_way_;
      if (UCS_PTR_IS_PTR(ucp_ep_close_nbx(to.endpoint, &parameters))) ++closes_under_way_;
      to.endpoint = nullptr;
    }
  }
  return closes_under_way_ == 0;
}

void UcpWorker::on_close(void* request, ucs_status_t, void* closes) {
  --*static_cast<int*>(closes);
  ucp_request_free(request);
}

UcpWorker::~UcpWorker() {
  const Turn turn(mutex_);
  closing_ = true;
  for (Peer& to : peers_)
    if (to.key != nullptr) ucp_rkey_destroy(to.key);
  if (registration_ != nullptr) ucp_mem_unmap(context_, registration_);
  if (worker_ != nullptr) ucp_worker_destroy(worker_);
  if (context_ != nullptr) ucp_cleanup(context_);
}

// ---- failure

void UcpWorker::fail(int rank, ucs_status_t status) noexcept {
  if (closing_ || failed_) return;
  if (rank >= 0)
    if (Peer& to = peers_[static_cast<std::size_t>(rank)]; to.link != Link::up || loses_peers_) {
      if (to.link == Link::up) give_up(to);
      to.link = Link::refused;
      return;
    }
  failed_ = true;
  failed_peer_ = rank;
  failure_ = status;
}

// UCX calls this and the other callbacks from its functions only, hence within a turn.
void UcpWorker::on_failure(void* peer, ucp_ep_h, ucs_status_t status) {
  Peer& to = *static_cast<Peer*>(peer);
  to.owner->fail(to.rank, status);
}

// UCX may never say that it needs no source of them any more.
void UcpWorker::give_up(Peer& to) noexcept {
  to.is_lost = true;
  for (Request& record : records_) {
    if (record.peer != &to || !record.is_counted) continue;
    if (record.sources != nullptr) --record.sources->needed;
    record.is_counted = false;
  }
  to.queued = 0;
  to.completed = to.flushed = to.flushing = to.written;
}

bool UcpWorker::is_lost(int rank) noexcept {
  const Turn turn(mutex_);
  return peers_[static_cast<std::size_t>(rank)].is_lost;
}

void UcpWorker::lose(int rank) noexcept {
  const Turn turn(mutex_);
  if (Peer& to = peers_[static_cast<std::size_t>(rank)]; loses_peers_ && to.link == Link::up)
    fail(rank, UCS_ERR_CANCELED);
}

int UcpWorker::failed_peer() noexcept {
  const Turn turn(mutex_);
  return failed_peer_;
}

const char* UcpWorker::failure() noexcept {
  const Turn turn(mutex_);
  return ucs_status_string(failure_);
}

// ---- the call path

Request* UcpWorker::take_record() noexcept {
  if (unused_records_.empty()) {
    try {
      unused_records_.reserve(records_.size() + records_at_once);  // giving back never allocates
      for (std::size_t i = 0; i < records_at_once; ++i) unused_records_.push_back(&records_.emplace_back());
    } catch (const std::bad_alloc&) {
      if (unused_records_.empty()) return nullptr;
    }
  }
  Request* const record = unused_records_.back();
  unused_records_.pop_back();
  return record;
}

void UcpWorker::give_back(Request& record) noexcept {
  record.peer = nullptr;
  unused_records_.push_back(&record);
}

// What UCX has queued. A peer may have failed in that very call.
void UcpWorker::count(Request& record, std::uint32_t& as) noexcept {
  record.is_counted = !record.peer->is_lost;
  if (record.is_counted) ++as;
}

bool UcpWorker::put(Request* record, std::size_t offset, const void* source, std::size_t bytes,
                    std::uint32_t& queued) noexcept {
  Peer& to = *record->peer;
  ucp_request_param_t parameters{};
  parameters.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  parameters.cb.send = on_put;
  parameters.user_data = record;
  const ucs_status_ptr_t status = ucp_put_nbx(to.endpoint, source, bytes, to.memory + offset, to.key, &parameters);
  if (UCS_PTR_IS_PTR(status))
    count(*record, queued);
  else
    give_back(*record);
  if (UCS_PTR_IS_ERR(status)) fail(to.rank, UCS_PTR_STATUS(status));
  to.written += bytes + header_bytes;
  return !failed_;
}

bool UcpWorker::put(Peer& to, std::size_t offset, const void* source, std::size_t bytes, Sources& sources) noexcept {
  if (to.is_lost) return true;
  Request* const record = take_record();
  if (record == nullptr) return fail(to.rank, UCS_ERR_NO_MEMORY), false;
  *record = {&to, &sources, 0, {}};
  return put(record, offset, source, bytes, sources.needed);
}

bool UcpWorker::put(Peer& to, std::size_t offset, std::uint64_t number) noexcept {
  if (to.is_lost) return true;
  Request* const record = take_record();
  if (record == nullptr) return fail(to.rank, UCS_ERR_NO_MEMORY), false;
  *record = {&to, nullptr, number, {}};
  return put(record, offset, &record->number, sizeof record->number, to.queued);
}

void UcpWorker::on_put(void* request, ucs_status_t status, void* data) {
  Request& record = *static_cast<Request*>(data);
  UcpWorker& self = *record.peer->owner;
  if (status != UCS_OK) self.fail(record.peer->rank, status);
  if (record.is_counted) --(record.sources != nullptr ? record.sources->needed : record.peer->queued);
  self.give_back(record);
  ucp_request_free(request);
}

bool UcpWorker::send(Peer& to, std::size_t offset, const std::byte* source, std::size_t bytes, std::size_t flag_offset,
                     std::uint64_t value, Sources& sources) noexcept {
  if (to.is_lost) return true;
  Request* const record = take_record();
  if (record == nullptr) return fail(to.rank, UCS_ERR_NO_MEMORY), false;
  *record = {&to, bytes == 0 ? nullptr : &sources, 0, {++to.sent, to.received, offset, flag_offset, value, own_rank_}};
  ucp_request_param_t parameters{};
  parameters.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
  parameters.cb.send = on_put;
  parameters.user_data = record;
  parameters.flags = UCP_AM_SEND_FLAG_EAGER;
  const ucs_status_ptr_t status =
      ucp_am_send_nbx(to.endpoint, message_id, &record->header, sizeof record->header, source, bytes, &parameters);
  if (UCS_PTR_IS_PTR(status))
    count(*record, bytes == 0 ? to.queued : sources.needed);
  else
    give_back(*record);
  if (UCS_PTR_IS_ERR(status)) fail(to.rank, UCS_PTR_STATUS(status));
  to.written += bytes + header_bytes;
  if (to.marks.size() == most_marks)
    to.marks.back() = {to.sent, to.written};
  else if (to.written - (to.marks.empty() ? to.flushed : to.marks.back().written) > most_unflushed_bytes / 2)
    to.marks.push_back({to.sent, to.written});
  return !failed_;
}

ucs_status_t UcpWorker::on_message(void* self, const void* header, size_t size, void* data, size_t bytes,
                                   const ucp_am_recv_param_t* parameters) {
  UcpWorker& worker = *static_cast<UcpWorker*>(self);
  Header h{};
  if (size != sizeof h) return worker.fail(-1, UCS_ERR_INVALID_PARAM), UCS_OK;
  std::memcpy(&h, header, sizeof h);
  if (h.sender < 0 || h.sender >= static_cast<std::int64_t>(worker.peers_.size()))
    return worker.fail(-1, UCS_ERR_INVALID_PARAM), UCS_OK;
  Peer& from = worker.peers_[static_cast<std::size_t>(h.sender)];
  if (++from.received != h.serial || (parameters->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0 ||
      h.offset > worker.memory_bytes_ || bytes > worker.memory_bytes_ - h.offset)
    return worker.fail(from.rank, UCS_ERR_INVALID_PARAM), UCS_OK;
  for (; !from.marks.empty() && from.marks.front().serial <= h.received; from.marks.erase(from.marks.begin()))
    from.flushed = from.marks.front().written;
  if (bytes != 0) std::memcpy(worker.memory_ + h.offset, data, bytes);
  // Release: partner of the acquire in look(); the bytes come first.
  if (h.flag_offset < worker.memory_bytes_)
    std::atomic_ref(*reinterpret_cast<std::uint64_t*>(worker.memory_ + h.flag_offset))
        .store(h.value, std::memory_order_release);
  return UCS_OK;
}

bool UcpWorker::write(int rank, std::size_t offset, const void* source, std::size_t bytes, std::size_t flag_offset,
                      std::uint64_t value, Sources& sources, Outstanding& outstanding) noexcept {
  const Turn turn(mutex_);
  if (failed_) return false;
  Peer& to = peers_[static_cast<std::size_t>(rank)];
  if (to.by_messages) {
    const auto* from = static_cast<const std::byte*>(source);
    while (bytes > most_message_bytes) {
      if (!send(to, offset, from, most_message_bytes, no_flag, 0, sources)) return false;
      from += most_message_bytes;
      offset += most_message_bytes;
      bytes -= most_message_bytes;
    }
    if (!send(to, offset, from, bytes, flag_offset, value, sources)) return false;
  } else {
    if (bytes != 0) {
      if (!put(to, offset, source, bytes, sources)) return false;
      if (const ucs_status_t s = ucp_worker_fence(worker_); s != UCS_OK) return fail(rank, s), false;
    }
    if (!put(to, flag_offset, value)) return false;
  }
  if (!to.by_messages && !to.is_lost && to.written - to.flushing > most_unflushed_bytes / 2) flush(to);
  outstanding = outstanding_of(to);
  return !failed_;
}

// Of all that has been written so far.
void UcpWorker::flush(Peer& to) noexcept {
  Request* const record = take_record();
  if (record == nullptr) return fail(to.rank, UCS_ERR_NO_MEMORY);
  *record = {&to, nullptr, to.written, {}};
  to.flushing = to.written;
  ucp_request_param_t parameters{};
  parameters.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  parameters.cb.send = on_flush;
  parameters.user_data = record;
  const ucs_status_ptr_t begun = ucp_ep_flush_nbx(to.endpoint, &parameters);
  if (!UCS_PTR_IS_PTR(begun)) end_flush(*record, UCS_PTR_STATUS(begun));
}

void UcpWorker::end_flush(Request& record, ucs_status_t status) noexcept {
  Peer& to = *record.peer;
  if (status != UCS_OK) fail(to.rank, status);
  to.flushed = std::max(to.flushed, record.number);
  give_back(record);
}

void UcpWorker::on_flush(void* request, ucs_status_t status, void* data) {
  Request& record = *static_cast<Request*>(data);
  record.peer->owner->end_flush(record, status);
  ucp_request_free(request);
}

Outstanding UcpWorker::outstanding_of(const Peer& to) const noexcept {
  const bool completed = to.written - to.flushed <= most_unflushed_bytes || to.completed == to.written;
  return failed_ || to.is_lost || (to.queued == 0 && completed) ? Outstanding::none : Outstanding::some;
}

bool UcpWorker::is_needed(const Sources& sources) noexcept {
  const Turn turn(mutex_);
  return sources.needed != 0 && !failed_;
}

Outstanding UcpWorker::outstanding(int rank) noexcept {
  const Turn turn(mutex_);
  Peer& to = peers_[static_cast<std::size_t>(rank)];
  if (to.by_messages && to.completed != to.written && outstanding_of(to) == Outstanding::some) {
    Sources none;
    send(to, 0, nullptr, 0, no_flag, 0, none);
    to.completed = to.written;
  }
  return outstanding_of(to);
}

bool UcpWorker::drain() noexcept {
  const Turn turn(mutex_);
  while (puts_ && ucp_worker_progress(worker_) != 0) {
  }
  return !failed_;
}

bool UcpWorker::progress() noexcept {
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return true;  // another thread is at it
  const Turn turn(std::move(lock));
  ucp_worker_progress(worker_);
  return !failed_;
}

bool UcpWorker::sleep(std::uint64_t nanoseconds) noexcept {
  if (events_ < 0) return false;
  {
    const Turn turn(mutex_);
    if (failed_) return false;
    // Not armed: something has come already.
    if (const ucs_status_t s = ucp_worker_arm(worker_); s != UCS_OK) return s == UCS_ERR_BUSY;
  }
  pollfd events{events_, POLLIN, 0};
  const timespec time{0, static_cast<long>(puts_ ? std::min(nanoseconds, longest_sleep_with_puts_ns) : nanoseconds)};
  ppoll(&events, 1, &time, nullptr);
  return true;
}

}  // namespace

}  // namespace papaya::ucx

extern "C" {
__attribute__((visibility("default"))) extern const char* const papaya_ucx_version;
__attribute__((visibility("default"))) papaya::ucx::Worker* papaya_ucx_open(const papaya::ucx::Options* options,
                                                                            const char** why);
}
const char* const papaya_ucx_version = PAPAYA_VERSION;

papaya::ucx::Worker* papaya_ucx_open(const papaya::ucx::Options* options, const char** why) {
  using namespace papaya::ucx;
  others_use_ucx = options->others_use_ucx;
  user_wants_messages = std::getenv("UCX_LOG_LEVEL") != nullptr;
  ucs_log_push_handler(hear);
  try {
    auto worker = std::make_unique<UcpWorker>();
    *why = worker->open(*options);
    if (*why == nullptr) return worker.release();
  } catch (const std::bad_alloc&) {
    *why = "out of memory";
  }
  ucs_log_pop_handler();
  return nullptr;
}
