#include "profiler/record/stack_requests.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/clock.hpp"
#include "base/folder_mode.hpp"

namespace papaya {

namespace {

using namespace std::chrono_literals;

// With more ranks than cores a rank may be without one for seconds.
constexpr auto answer_within = 10s;
constexpr auto absent_after = 2s;
constexpr auto written_out_within = 2s;  // by other nodes' watches
constexpr auto between_looks = 250ms;
constexpr const char* file_name = "stacks-wanted";

bool is_same(const struct stat& a, const struct stat& b) noexcept {
  return a.st_ino == b.st_ino && a.st_mtim.tv_sec == b.st_mtim.tv_sec && a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

}  // namespace

StackRequests::~StackRequests() {
  if (!is_sent_) return;
  const std::string path = folder_ + "/" + file_name;
  // Opened, not only looked at: network file systems then ask the server.
  const int file = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
  if (file < 0) return;
  struct stat now {};
  const bool is_own = fstat(file, &now) == 0 && is_same(now, file_);
  close(file);
  if (is_own) unlink(path.c_str());
}

bool StackRequests::add_far(const std::string& record) {
  const int file = open(record.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  trace::Header header{};
  std::uint32_t words[3] = {};
  Far far{record};
  if (pread(file, &header, sizeof header, 0) == static_cast<ssize_t>(sizeof header) &&
      std::memcmp(header.magic, trace::magic, sizeof trace::magic) == 0 && header.version == trace::format_version &&
      header.header_bytes == sizeof header && header.stacks_offset != 0 && header.end_ticks == 0 &&
      pread(file, words, sizeof words, static_cast<off_t>(header.stacks_offset)) == sizeof words)
    far = {record, header.stacks_offset, words[1], words[2] == 1};
  close(file);
  ranks_.push_back({{}, std::move(far)});
  return true;
}

void StackRequests::send() {
  if (std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.near.has_value(); })) return;
  const std::string path = folder_ + "/" + file_name;
  const std::string made = path + "-" + std::to_string(getpid()) + "-" + std::to_string(clock::unix_ns());
  const int file = open(made.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
  if (file < 0) return;
  set_mode_by_folder(file, made, 0644);
  // In place of what somebody left who was killed, or of somebody's wish, which the same answers fulfil. As both files
  // exist until then, they differ.
  is_sent_ = fstat(file, &file_) == 0 && rename(made.c_str(), path.c_str()) == 0;
  close(file);
  if (!is_sent_) unlink(made.c_str());
}

bool StackRequests::look_again(Far& far) const {
  const int file = open(far.record.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  std::uint32_t words[3] = {};
  const bool is_read =
      pread(file, words, sizeof words, static_cast<off_t>(far.stacks_offset)) == static_cast<ssize_t>(sizeof words);
  close(file);
  far.is_answered = is_read && words[1] != far.before;
  far.answers = is_read && words[2] == 1;
  return far.is_answered || !far.answers;
}

bool StackRequests::are_over(std::chrono::milliseconds waited) {
  if (waited >= answer_within) {
    // Those behind the one that was waited for.
    for (Rank& rank : ranks_)
      if (is_sent_ && rank.far.answers && !rank.far.is_answered) look_again(rank.far);
    return true;
  }
  if (waited < next_look_) return false;
  // One that has not answered is enough to wait: it is the first one looked at next time.
  if (std::any_of(ranks_.begin(), ranks_.end(), [waited](const Rank& rank) {
        return rank.near && rank.near->is_sent() && !rank.near->is_answered() &&
               (waited < absent_after || rank.near->can_answer());
      })) {
    if (waited >= absent_after) next_look_ = waited + between_looks;
    return false;
  }
  if (!is_sent_) return true;
  next_look_ = waited + between_looks;
  return waited >= written_out_within && std::all_of(ranks_.begin(), ranks_.end(), [this](Rank& rank) {
           return !rank.far.answers || rank.far.is_answered || look_again(rank.far);
         });
}

bool StackRequests::is_sent(std::size_t rank) const noexcept {
  const Rank& asked = ranks_[rank];
  return asked.near ? asked.near->is_sent() : is_sent_ && (asked.far.answers || asked.far.is_answered);
}

bool StackRequests::is_answered(std::size_t rank) const noexcept {
  const Rank& asked = ranks_[rank];
  return asked.near ? asked.near->is_answered() : asked.far.is_answered;
}

bool StackWishes::is_new(int folder) noexcept {
  // Opened anew: of a folder that has been open for long, network file systems need not ask the server.
  const int anew = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (anew < 0) return false;
  const bool is_one = is_new_in(anew);
  close(anew);
  return is_one;
}

bool StackWishes::is_new_in(int folder) noexcept {
  struct stat now {};
  if (fstat(folder, &now) != 0) return false;
  // Changes within one tick of the file system's clock look like one: the look after a change looks once more.
  const bool had_changed = has_changed_;
  has_changed_ = !is_same(now, folder_);
  folder_ = now;
  if ((!has_changed_ && !had_changed) || fstatat(folder, file_name, &now, AT_SYMLINK_NOFOLLOW) != 0 ||
      is_same(now, file_))
    return false;
  file_ = now;
  return true;
}

}  // namespace papaya
