"""Faults to plant: each must make one of its tests fail.

A row: name, file, the text that stands there once, what replaces it, the tests that are to find it (of the release
build; "tsan:NAME" is a test of the build with ThreadSanitizer, which sees orders that x86 never shows).
"""

FAULTS = [
    # Flags and the data behind them
    ("a deposit is announced without release", "algorithms/rounds.hpp",
     "flag(round, slot).store(round << 16 | progress, std::memory_order_release);",
     "flag(round, slot).store(round << 16 | progress, std::memory_order_relaxed);", ["tsan:protocol"]),
    ("a flag is read without acquire", "algorithms/rounds.hpp",
     "const std::uint64_t value = flag(round, slot).load(std::memory_order_acquire);",
     "const std::uint64_t value = flag(round, slot).load(std::memory_order_relaxed);", ["tsan:protocol"]),
    ("reads are not over when a rank has released", "algorithms/rounds.hpp",
     "mine().released.store(round, std::memory_order_release);",
     "mine().released.store(round, std::memory_order_relaxed);", ["tsan:protocol"]),
    ("a flag before its data", "algorithms/transport/shared_notified.cpp",
     "  if (bytes != 0) std::memcpy(to.segment + offset, source, bytes);\n"
     "  // Release: partner of the acquire in look(); the bytes come first.\n"
     "  to.flags[id].value.store(value, std::memory_order_release);\n",
     "  to.flags[id].value.store(value, std::memory_order_release);\n"
     "  if (bytes != 0) std::memcpy(to.segment + offset, source, bytes);\n", ["tsan:protocol"]),
    ("a notification without release", "algorithms/transport/shared_notified.cpp",
     "to.flags[id].value.store(value, std::memory_order_release);",
     "to.flags[id].value.store(value, std::memory_order_relaxed);", ["tsan:protocol"]),
    ("a chain's count without release", "algorithms/chain.cpp",
     "value.store(round << 16 | count, std::memory_order_release);",
     "value.store(round << 16 | count, std::memory_order_relaxed);", ["tsan:protocol"]),
    ("a position in the chain is one too high", "algorithms/chain.cpp",
     "std::memory_order_acq_rel, std::memory_order_relaxed));\n  return static_cast<int>(next & 0x7fff) - 1;",
     "std::memory_order_acq_rel, std::memory_order_relaxed));\n  return static_cast<int>(next & 0x7fff);",
     ["protocol"]),

    # Banks and memory
    ("a bank is free one round too early", "algorithms/rounds.hpp",
     "    known_released_ = std::max(known_released_, least_released());\n"
     "    return round < known_released_ + static_cast<std::uint64_t>(shape_.banks);",
     "    known_released_ = std::max(known_released_, least_released());\n"
     "    return round <= known_released_ + static_cast<std::uint64_t>(shape_.banks);", ["protocol"]),
    ("the last rank's line is not looked at", "algorithms/rounds.hpp",
     "for (int rank = 0; rank < team_.size; ++rank)\n      least = ",
     "for (int rank = 0; rank + 1 < team_.size; ++rank)\n      least = ", ["protocol"]),
    ("the interval of a fallback ends one round early", "algorithms/rounds.hpp",
     "    fallback_end_ = end;", "    fallback_end_ = end - 1;", ["protocol"]),
    ("borrowed memory is lent though it is still read", "algorithms/transport/deposit_arena.cpp",
     "} else if (!extent->owner->readers_.have_released(extent->owner->needed_)) {",
     "} else if (false) {", ["protocol"]),
    ("a retired extent is free at once", "algorithms/transport/deposit_arena.cpp",
     "if (!extent->readers.have_released(extent->needed)) {", "if (false) {", ["protocol"]),
    ("deposits of unbounded lifetime take what is promised", "algorithms/transport/deposit_arena.cpp",
     "is_unbounded ? unbounded_from(area_.bytes, largest_bytes_, area_.concurrent) / granule_bytes : 0;", "0;",
     ["protocol"]),

    # Credits
    ("one chunk more than there are slots", "algorithms/sliding_window.hpp",
     "return sent_ < released_ + window_.slots;", "return sent_ <= released_ + window_.slots;", ["protocol"]),
    ("credit is returned one chunk late", "algorithms/sliding_window.hpp",
     "if (released_ - returned_ < window_.credits_at_once) return false;",
     "if (released_ - returned_ <= window_.credits_at_once) return false;", ["protocol"]),
    ("a rank ahead returns to its slots before they are free", "algorithms/streams.hpp",
     "return credit(to) > 2 * to.sent_before_fallback;", "return true;", ["protocol"]),

    # Chunks, blocks and roots
    ("an off-by-one in a chunk of the ring", "algorithms/allreduce/ring.cpp",
     "return block * (operands.count / ranks()) + std::min(block, operands.count % ranks());",
     "return block * (operands.count / ranks()) + std::min(block + 1, operands.count % ranks());", ["protocol"]),
    ("the ring sums in its second half", "algorithms/allreduce/ring.cpp",
     "if (step < steps / 2)", "if (step <= steps / 2)", ["protocol"]),
    ("the last chunk is cut short", "algorithms/tree.cpp",
     "const std::size_t size = std::min(slot_bytes, bytes - offset);",
     "const std::size_t size = std::min(slot_bytes, bytes - offset - (bytes - offset > 4096 ? 1 : 0));", ["protocol"]),
    ("operands are swapped", "algorithms/halving.cpp",
     "reduction.combine(reduction, keeps_upper ? theirs : mine, keeps_upper ? mine : theirs, result + low * element,",
     "reduction.combine(reduction, keeps_upper ? mine : theirs, keeps_upper ? theirs : mine, result + low * element,",
     ["protocol"]),
    ("a block from the wrong sender", "algorithms/exchange.cpp",
     "copy_bytes(receive + block(sender), rounds_.data(round, sender, all) + mine, bytes);",
     "copy_bytes(receive + block(sender), rounds_.data(round, sender, all), bytes);", ["protocol"]),
    ("a wrong root", "algorithms/bcast/fragments.hpp",
     "const bool is_root = rounds_.team().rank == operands.root;",
     "const bool is_root = rounds_.team().rank == 0;", ["protocol"]),
    ("the sender keeps its memory too short a time", "algorithms/exchange.cpp",
     "    rounds_.wait_until_released(next_, site, static_cast<Prepared*>(this));\n", "", ["protocol"]),
    ("dissemination leaves out the wrap-around", "algorithms/dissemination.cpp",
     "    patterns::cover_by_tree(shape.participants + first, shape.participants - 1, shape.participants, add);\n", "", ["protocol"]),

    # Ranks that decline, and decisions
    ("a rank that declines is missed", "algorithms/exchange.cpp",
     "declined = declined || flag == (round << 16 | Rounds::declined);", "", ["protocol"]),
    ("a rank that declines is missed in the tree", "algorithms/tree.cpp",
     "return progress == Rounds::declined ? State::declined : State::there;", "return State::there;", ["protocol"]),
    ("a refused copy is not noticed", "algorithms/exchange.cpp",
     "    rounds_.refuse(round);\n", "    (void)round;\n", ["protocol"]),
    ("an inter-communicator is taken for another", "interpose/decide.hpp",
     "if (communicator.inter) return Reason::intercommunicator;", "", ["unit"]),
    ("a message of 4 GiB is small", "interpose/decide.cpp",
     "if (bytes > largest_message) return native(Reason::too_large);", "", ["unit"]),
    ("a bcast is set up where ranks wait", "interpose/decide.cpp",
     "if (!is_rooted(choice.rule->algorithm->collective)) return {Step::set_up, Reason::none};",
     "return {Step::set_up, Reason::none};", ["unit"]),
    ("operands of a non-commutative operation are reordered", "interpose/decide.cpp",
     "(!is_reduction || signature.commutative);", "(!is_reduction || true);", ["unit"]),
    ("the root after the last one is valid", "interpose/decide.hpp",
     "call.root >= communicator.facts.ranks", "call.root > communicator.facts.ranks", ["unit"]),
    ("a plan is set up one call late", "interpose/decide.cpp",
     "plan.calls_before < calls_before_setup", "plan.calls_before <= calls_before_setup", ["unit"]),
    ("a set-up that has failed is tried again", "interpose/decide.cpp",
     "if (plan.failure != Reason::none) return {Step::go_native, plan.failure};", "", ["unit"]),

    # Set-up
    ("a set-up that has failed keeps its region", "interpose/plan.cpp",
     "  wire.reset();\n  region.give_back();\n", "  wire.reset();\n", ["unit"]),
    ("a rank runs though another could not be prepared", "interpose/plan.cpp",
     "  if (are_ready)\n    plan.prepared =", "  if (is_ready)\n    plan.prepared =", ["unit"]),
    ("a rank that is not connected is taken for one that is", "interpose/make_wire.cpp",
     "link == Link::up ? 1 : 0", "link != Link::under_way ? 1 : 0", ["unit"]),
    ("a wire without all shares is used", "interpose/make_wire.cpp",
     "return one < 0;", "return one < -1;", ["unit"]),

    # Waiting
    ("a sleeper does not look once more", "algorithms/waiting/wait.cpp",
     "  bell_.sleepers.fetch_add(1, std::memory_order_relaxed);\n  publish_before_look(bell_);\n",
     "  bell_.sleepers.fetch_add(1, std::memory_order_relaxed);\n", ["tsan:protocol", "protocol"]),
    ("a waiting rank does not keep MPI going", "algorithms/waiting/wait.cpp",
     "  policy_.poke();\n  const std::uint64_t after", "  const std::uint64_t after", ["progress-openmpi"]),
    ("a stall is not reported", "algorithms/waiting/wait.cpp",
     "policy_.stall_ticks_ == 0 || now < begin_", "true || now < begin_", ["stalls-openmpi"]),

    # The reader and the analysis
    ("a damaged header is believed", "profiler/read/read_spill.cpp",
     "if (!is_read || block.header.checksum != checksum_of(block.header) || !is_possible(block.header, next)) {",
     "if (!is_read) {", ["unit", "fuzz-read"]),
    ("an event of which half is written counts", "profiler/read/read.cpp",
     "event.commit == static_cast<std::uint32_t>(number + 1) && ", "", ["unit", "fuzz-read"]),
    ("an algorithm one beyond the table counts", "profiler/read/read.cpp",
     "event.algorithm < header.algorithm_count", "event.algorithm <= header.algorithm_count", ["unit"]),
    ("the table of algorithms may lie beyond the file", "profiler/read/read.cpp",
     "end_of(header.algorithms_offset, header.algorithm_count,", "end_of(header.algorithms_offset, 0,", ["unit"]),
    ("the reason of an event of version 3 is read as the algorithm too", "profiler/read/version_3.cpp",
     "  today.reason = then.reason;\n", "", ["unit"]),
    ("an overlong character passes", "profiler/read/read.cpp",
     "(lead == 0xe0 && byte(1) < 0xa0) || ", "", ["unit"]),
    ("runs of two jobs are mixed", "profiler/read/read.cpp",
     "return origins[file.header.node] != std::pair{file.header.begin_ticks, file.header.begin_unix_ns};",
     "return false;", ["unit"]),
    ("calls of one rank match twice", "profiler/analysis/matching.cpp",
     " || call.sightings[i].member == call.sightings[i - 1].member", "", ["unit"]),
    ("a call that some ranks have not recorded counts as complete", "profiler/analysis/matching.cpp",
     "if (seen == static_cast<std::size_t>(group.size)) return Match::complete;", "return Match::complete;", ["unit"]),
    ("the percentile is one sample off", "profiler/analysis/imbalance.cpp",
     "(samples_ns.size() * percent + 99) / 100", "(samples_ns.size() * percent + 199) / 100", ["unit"]),

    # Interposition
    ("in place the wrong count is recorded", "interpose/message.hpp",
     "const bool in_place = state.rank == root && send == MPI_IN_PLACE;\n"
     "  return {in_place ? bytes_of(recvcount, recvtype) : bytes_of(sendcount, sendtype), root};",
     "return {bytes_of(sendcount, sendtype), root};", ["c_blocking-openmpi"]),
    ("the counts of all peers but the last", "interpose/message.hpp",
     "for (int i = 0; i < ranks; ++i) sum = saturating::sum(sum, counts[i] > 0 ? static_cast<std::uint64_t>(counts[i]) "
     ": 0);",
     "for (int i = 0; i + 1 < ranks; ++i) sum = saturating::sum(sum, counts[i] > 0 ? "
     "static_cast<std::uint64_t>(counts[i]) : 0);", ["c_blocking-openmpi"]),
    ("a negative count is large", "interpose/message.hpp",
     "return count > 0 ? bytes_of_elements(static_cast<std::uint64_t>(count), type) : 0;",
     "return bytes_of_elements(static_cast<std::uint64_t>(count), type);", ["errors-openmpi", "invalid-openmpi"]),
]
