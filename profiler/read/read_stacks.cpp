#include "profiler/read/read_stacks.hpp"

#include <algorithm>
#include <cstring>
#include <memory>

#include "profiler/read/file_source.hpp"

namespace papaya::report {

namespace {

// 0, as if they had never been taken, where the header is damaged.
std::int64_t taken_unix_ns(const trace::Header& header) {
  constexpr double most_ns = 9e18;  // fits into the result, also after rounding
  if (header.stacks_ticks <= header.begin_ticks || header.begin_unix_ns < 0) return 0;
  const double since_ns = static_cast<double>(header.stacks_ticks - header.begin_ticks) * header.ns_per_tick;
  const bool is_sane = since_ns >= 0 && since_ns + static_cast<double>(header.begin_unix_ns) <= most_ns;  // no NaN
  return is_sane ? header.begin_unix_ns + static_cast<std::int64_t>(since_ns) : 0;
}

}  // namespace

RankStacks read_stacks(const std::string& path) {
  RankStacks ranks;
  const FileSource source(path);
  trace::Header header{};
  if (!source.read(0, &header, sizeof header) || std::memcmp(header.magic, trace::magic, sizeof trace::magic) != 0 ||
      header.version != trace::format_version || header.header_bytes != sizeof header)
    return ranks;
  ranks.rank = header.rank;
  ranks.node = header.node;
  ranks.nodes = header.nodes;
  ranks.host = clean_text({header.host, sizeof header.host});
  ranks.process = header.process;
  ranks.has_ended = header.end_ticks != 0;
  const auto stacks = std::make_unique<trace::Stacks>();
  std::vector<trace::Module> modules(std::min(header.module_count, trace::module_capacity));
  if (!source.read(header.stacks_offset, stacks.get(), sizeof *stacks) ||
      !source.read(header.modules_offset, modules.data(), modules.size() * sizeof(trace::Module)))
    return ranks;
  ranks.answers = stacks->answers == 1;
  ranks.taken_unix_ns = taken_unix_ns(header);
  for (std::uint32_t i = 0; i < std::min(stacks->count, trace::most_stacks); ++i) {
    const trace::ThreadStack& thread = stacks->thread[i];
    Stack& stack = ranks.threads.emplace_back();
    stack.is_first = thread.thread == header.process;
    stack.state =
        static_cast<trace::StackState>(std::min(thread.state, static_cast<std::uint32_t>(trace::StackState::silent)));
    for (std::uint32_t f = 0; f < std::min(thread.frames, trace::most_stack_frames); ++f)
      stack.frames.push_back(named(frame_of(thread.frame[f], modules)));
  }
  return ranks;
}

}  // namespace papaya::report
