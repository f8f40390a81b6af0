#include "interpose/output_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <utility>

#include "base/log.hpp"
#include "interpose/output.hpp"

namespace papaya {

namespace {

std::optional<std::string> name_of(int descriptor) {
  std::error_code error;
  const auto name = std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", descriptor), error);
  if (error) return std::nullopt;
  return name.string();
}

}  // namespace

void OutputFolder::open_by_name() {
  descriptor_ = ::open(name_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  identity_.note(descriptor_);
}

bool OutputFolder::is_still_there() const {
  return identity_.is_of(descriptor_);
}

void OutputFolder::look_up_name() {
  name_ = name_of(descriptor_).value_or(name_);
}

std::string OutputFolder::path() const {
  return descriptor_ >= 0 ? fmt::format("/proc/self/fd/{}", descriptor_) : name_;
}

void OutputFolder::make(const Job& job, std::string wanted, std::string_view program, std::string_view mpi,
                        std::string_view run, std::uint64_t least_bytes) {
  const std::string otherwise = output::default_folder(program, job.ranks);
  if (wanted.empty()) wanted = otherwise;
  std::string sentence;
  name_ = output::make_folder(std::move(wanted), otherwise, least_bytes, descriptor_, sentence);
  if (!sentence.empty()) log::warn(sentence);
  // The report goes into this very folder at the end, also if another job has renamed it by then.
  identity_.note(descriptor_);
  if (!name_.empty()) output::write_start_files(path(), job.settings, program, job.ranks, mpi, run);
}

// The leader of a node other than rank 0's, which may see rank 0's folder, or have a file system of its own. There a
// folder of this name may be anybody's: an earlier job's, or another user's.
void OutputFolder::find(const Job& job, std::string_view run) {
  std::string sentence;
  name_ = output::find_folder(name_, job.node, run, descriptor_, sentence);
  if (!sentence.empty()) log::warn(sentence);
  identity_.note(descriptor_);
}

// Opens the folder on the other ranks of the leader's node and makes sure that it is the same: another job that was
// started with the same output folder may have renamed this one in the meantime.
void OutputFolder::enter(const Job& job) {
  const bool leads = job.leads();
  for (int attempt = 0; attempt < 10; ++attempt) {
    name_ = job.oob_of_node->broadcast(name_);
    if (!leads) open_by_name();
    struct {
      std::uint64_t device;
      std::uint64_t file;
    } mine{identity_.device(), identity_.number()}, first = mine;
    job.oob_of_node->broadcast(&first, sizeof first);
    const bool same = descriptor_ < 0 || (mine.device == first.device && mine.file == first.file);
    if (job.oob_of_node->least(same ? 1 : 0) != 0) return;
    if (!leads && descriptor_ >= 0) ::close(descriptor_);
    if (leads) look_up_name();
  }
}

void OutputFolder::open(const Job& job, std::string wanted, std::string_view program, std::string_view mpi,
                        std::uint64_t least_bytes) {
  std::string run;
  if (job.rank == 0) {
    run = output::new_run();
    make(job, std::move(wanted), program, mpi, run, least_bytes);
  }
  name_ = job.oob->broadcast(name_);
  if (name_.empty()) return;
  if (job.nodes > 1) {
    run = job.oob->broadcast(run);
    if (job.node != 0 && job.leads()) find(job, run);
  }
  enter(job);
}

void OutputFolder::leave(const Job& job) {
  if (job.rank == 0 || descriptor_ < 0) return;
  close();
}

void OutputFolder::close() {
  ::close(descriptor_);
  descriptor_ = -1;
}

}  // namespace papaya
