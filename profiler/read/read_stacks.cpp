#include "profiler/read/read_stacks.hpp"

#include <algorithm>
#include <cstring>
#include <memory>

#include "profiler/read/file_source.hpp"

namespace papaya::report {

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
  if (header.stacks_ticks > header.begin_ticks)
    ranks.taken_unix_ns =
        header.begin_unix_ns +
        static_cast<std::int64_t>(static_cast<double>(header.stacks_ticks - header.begin_ticks) * header.ns_per_tick);
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
