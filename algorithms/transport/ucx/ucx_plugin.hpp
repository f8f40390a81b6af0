// The seam between a flavour library, which knows an MPI and no UCX, and libpapaya-ucx.so, which knows UCX
// and no MPI. What is passed through it is plain: what a rank must know of another is an address, bytes which
// the flavour hands round by MPI.
#pragma once

#include <cstddef>
#include <cstdint>

#include "algorithms/transport/link.hpp"

namespace papaya::ucx {

// Writes of one user whose sources are still needed. Guarded by the worker's lock.
struct Sources {
  std::uint32_t needed = 0;
};

// Whether writes to a peer are outstanding that this rank has to see to.
enum class Outstanding : std::uint8_t {
  none,  // all that was written to it will arrive without this rank
  some,  // to be waited for, by progress(), before turning to something else; then drain()
};

// The process's UCX: a context, a worker, an endpoint for each rank that it has been connected to, and memory
// that they write into. Any thread may call any function; one lock guards all.
class Worker {
 public:
  Worker() = default;
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  virtual ~Worker() = default;

  virtual std::byte* memory() const noexcept = 0;
  virtual const std::byte* address() const noexcept = 0;
  virtual std::size_t address_bytes() const noexcept = 0;

  // Begins to connect to a rank, by its address; nothing if that has been done. False: UCX cannot reach it. Both
  // sides must progress() while its link is under way. A rank that is refused does not count as a failure: nothing has
  // been written to it.
  virtual bool connect(int peer, const std::byte* address, std::size_t bytes) noexcept = 0;
  virtual Link link(int peer) noexcept = 0;

  // Writes `bytes` to `offset` of the peer's memory and then `value` to `flag_offset`, a multiple of 8, which
  // is never seen before the data. `source` is needed until `sources` says so. False after a failure, for
  // good.
  virtual bool write(int peer, std::size_t offset, const void* source, std::size_t bytes, std::size_t flag_offset,
                     std::uint64_t value, Sources& sources, Outstanding& outstanding) noexcept = 0;
  virtual bool is_needed(const Sources& sources) noexcept = 0;
  virtual Outstanding outstanding(int peer) noexcept = 0;

  // False after a failure, for good. Where Options::loses_peers only after one that is of no peer in particular: with a
  // peer that fails what was written to it is given up, and what is written to it from then on is dropped.
  virtual bool progress() noexcept = 0;
  virtual bool drain() noexcept = 0;  // the same until there is nothing more to do at present
  // Sleeps until something comes or may be sent, so long at most. False at once where UCX cannot tell.
  virtual bool sleep(std::uint64_t nanoseconds) noexcept = 0;
  virtual bool is_lost(int peer) noexcept = 0;
  virtual void lose(int peer) noexcept = 0;  // as if it had failed
  // Which rank cannot be reached any more and why, in a few words; after a failure.
  virtual int failed_peer() noexcept = 0;
  virtual const char* failure() noexcept = 0;

  // Begins to close the endpoints; failures do not count any more. True once they are closed; to be asked
  // again after progress().
  virtual bool close() noexcept = 0;
};

struct Options {
  int rank;
  int ranks;            // of the job
  std::size_t bytes;    // of memory
  bool loses_peers;     // those that fail, instead of failing itself
  bool others_use_ucx;  // libucs was there before this plugin: its messages may be somebody else's
};

// What the plugin exports. papaya_ucx_version must equal the flavour's.
using Version = const char*;
// papaya_ucx_open: null if it cannot be, with the reason, in a few words, in `why`.
using Open = Worker* (*)(const Options* options, const char** why);

}  // namespace papaya::ucx
