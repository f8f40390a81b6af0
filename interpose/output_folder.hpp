// The output folder of this job as this rank has it: open by its descriptor, since another job that was started with
// the same name may rename it at any moment, and a program may close descriptors that are not its own.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/file_identity.hpp"
#include "interpose/job.hpp"

namespace papaya {

class OutputFolder {
 public:
  // Collective over the job: made on rank 0, found on other nodes. `wanted` is empty for the default; `mpi` is what the
  // start files say of the MPI, `least_bytes` what the records on rank 0's node take. Afterwards name() is empty on all
  // ranks if there is none to be had.
  void open(const Job& job, std::string wanted, std::string_view program, std::string_view mpi,
            std::uint64_t least_bytes);
  // Ranks other than 0, which comes back to it for the report, close it once their files are open.
  void leave(const Job& job);
  // Rank 0, at the end.
  void close();

  const std::string& name() const noexcept { return name_; }
  // By its descriptor, whatever it is called by now.
  std::string path() const;
  // The descriptor still means it.
  bool is_still_there() const;
  void look_up_name();

 private:
  void make(const Job& job, std::string wanted, std::string_view program, std::string_view mpi, std::string_view run,
            std::uint64_t least_bytes);
  void find(const Job& job, std::string_view run);
  void enter(const Job& job);
  void open_by_name();

  std::string name_;
  int descriptor_ = -1;
  FileIdentity identity_;  // when it was opened
};

}  // namespace papaya
