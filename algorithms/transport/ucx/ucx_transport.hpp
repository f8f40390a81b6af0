// UCX as the transport between nodes (ucx_window.hpp).
#pragma once

#include <mpi.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "algorithms/transport/transport.hpp"
#include "algorithms/transport/ucx/ucx_window.hpp"

namespace papaya {

class UcxTransport final : public Transport {
 public:
  // As UcxWindow::create. Null, on all ranks alike, where that is false.
  static std::unique_ptr<UcxTransport> open(MPI_Comm world, std::size_t bytes, const char* folder, std::string& why,
                                            OnFailure on_failure = OnFailure::end_job,
                                            UcxEnvironment environment = UcxEnvironment::set_for_a_moment) noexcept;

  const char* name() const noexcept override { return "UCX"; }
  Arena& arena() noexcept override { return window_.arena(); }
  bool connects() const noexcept override { return true; }
  Link begin_connecting(const std::vector<int>& members) noexcept override { return window_.begin_connecting(members); }
  Link link(const std::vector<int>& members) noexcept override { return window_.link(members); }
  bool progress_connections() noexcept override { return window_.exists() && window_.worker().progress(); }
  std::unique_ptr<ArenaNotified> offer(const std::vector<int>& members, wait::Policy& policy,
                                       const SegmentShape& shape) override;
  // After close() too: operations that MPI_Finalize has given up may still ask.
  void progress() noexcept override {
    if (window_.exists()) window_.progress();
  }
  bool is_lost(int member) noexcept override { return window_.worker().is_lost(member); }
  void lose(int member) noexcept override { window_.worker().lose(member); }
  void close() noexcept override { window_.free(); }

 private:
  UcxWindow window_;
};

}  // namespace papaya
