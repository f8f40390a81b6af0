#include "profiler/read/frames.hpp"

#include <fmt/format.h>

namespace papaya::report {

NamedFrame named(const Frame& frame) {
  if (frame.python.empty()) return {frame, {}, {}, 0};
  return {frame, frame.python, frame.module, static_cast<int>(frame.offset)};
}

std::vector<NamedFrame> frames_of(const RankFile& file, std::uint32_t call_site) {
  std::vector<NamedFrame> frames;
  if (call_site != 0)
    for (const Frame& frame : (*file.call_sites)[call_site - 1]) frames.push_back(named(frame));
  return frames;
}

std::string frame_text(const NamedFrame& frame) {
  const auto base = [](const std::string& path) { return path.substr(path.find_last_of('/') + 1); };
  if (frame.module.empty()) return fmt::format("{:#x}", frame.offset);
  if (frame.function.empty()) return fmt::format("{}+{:#x}", base(frame.module), frame.offset);
  if (frame.file.empty()) return fmt::format("{} ({})", frame.function, base(frame.module));
  return fmt::format("{} ({}:{})", frame.function, base(frame.file), frame.line);
}

std::string call_site_text(const std::vector<NamedFrame>& frames) {
  std::string text;
  for (const NamedFrame& frame : frames) text += (text.empty() ? "" : " < ") + frame_text(frame);
  return text;
}

}  // namespace papaya::report
