#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "base/folder_mode.hpp"
#include "base/size_signal.hpp"
#include "profiler/report/report.hpp"

namespace papaya::report {
namespace {

// Written under another name and then renamed, so that no reader sees half a report.
bool write_file(const std::string& folder, const std::string& folder_name, const char* file_name,
                std::string_view content, std::string* one_line_error) {
  if (content.empty()) {
    if (one_line_error != nullptr) *one_line_error = "not enough memory for its text";
    return false;
  }
  const std::string path = folder + file_name;
  const std::string temporary = fmt::format("{}.{}.tmp", path, getpid());
  const auto fail = [&](const char* what) {
    if (one_line_error != nullptr)
      *one_line_error = fmt::format("{} {}{}: {}", what, folder_name, file_name, std::strerror(errno));
    unlink(temporary.c_str());
    return false;
  };
  const NoSizeSignal no_signal;
  const int file = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) return fail("cannot create");
  set_mode_by_folder(file, path, 0666);
  while (!content.empty()) {
    const ssize_t written = write(file, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const int error = errno;
      close(file);
      errno = error;
      return fail("cannot write");
    }
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  if (close(file) != 0) return fail("cannot write");
  if (rename(temporary.c_str(), path.c_str()) != 0) return fail("cannot rename to");
  return true;
}

}  // namespace

namespace {

Run load(const std::string& folder) {
  return load_run(folder, {}, Extent::streamed_rings);
}

}  // namespace

bool write_reports(const std::string& folder, const std::string& name, std::string* one_line_error,
                   Readers* readers) noexcept {
  try {
    const Report report = [&] {
      Run run = load(folder);
      run.folder = name;
      return readers != nullptr ? report_on(run, *readers) : report_on(run);
    }();
    if (!report.usable) {
      if (one_line_error != nullptr) *one_line_error = report.verdict;
      return false;
    }
    return write_file(folder, name, "/report.txt", to_text(report), one_line_error) &&
           write_file(folder, name, "/report.json", to_json(report), one_line_error);
  } catch (...) {
    return false;  // out of memory, for the sentence too
  }
}

void help_to_write_reports(const std::string& folder, Readers& readers) noexcept {
  help_to_analyse(readers, [&] { return load(folder); });
}

}  // namespace papaya::report
