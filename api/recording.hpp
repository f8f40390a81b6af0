// The calls of a collective as a preloaded libpapaya.so records them. Without one nothing is done.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string>

#include "base/weak_records.hpp"
#include "include/papaya_weak.h"

namespace papaya::weak {

class Recording {
 public:
  // Of a collective that has been created on `comm`; texts and all as in WeakDescription.
  void open(MPI_Comm comm, const std::string& collective, const std::string& algorithm, const std::string& parameters,
            std::uint64_t bytes, int root);

  // One of papaya's functions has been called, and returns to `site`.
  void called_from(const void* site) noexcept {
    site_ = site;
    began_here_ = false;
  }
  // The next call begins, in that function.
  void begin() noexcept;
  // Such a function is entered while the call is under way, and left although it still is.
  void enter() noexcept;
  void leave() noexcept;
  // The call is done. `status` is called only if it is recorded.
  template <class Status>
  void finish(Status&& status, std::uint64_t element_bytes) {
    if (collective_ != nullptr) finish_with(status(), element_bytes);
  }

 private:
  void finish_with(const papaya_weak_status& status, std::uint64_t element_bytes) noexcept;

  const WeakRecords* records_ = nullptr;
  void* collective_ = nullptr;  // null: nothing is recorded
  std::uint64_t calls_ = 0;
  // Of the call under way.
  std::uint64_t number_ = 0;
  std::uint64_t entered_ticks_ = 0;
  std::uint64_t inside_ticks_ = 0;
  const void* site_ = nullptr;
  bool began_here_ = false;
};

}  // namespace papaya::weak
