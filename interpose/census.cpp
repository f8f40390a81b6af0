// Steps. Each rank has put itself on its node's roster before PMPI_Init, so the roster is usually whole when PMPI_Init
// returns, and nobody waits or sends. One rank decides for the node, by compare-and-swap. If the job has ranks
// elsewhere, one rank of each node tells rank 0 and waits for its answer: one short message each way. Only rank 0 gets
// a message without being known to have papaya. On its own node the roster tells, so nothing is sent there; a rank
// elsewhere that gets no answer ends the job, since a message that lies at a rank without papaya could be received by
// the program.
#include "interpose/census.hpp"

#include <fmt/format.h>
#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <ctime>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/version.hpp"
#include "interpose/end_job.hpp"
#include "interpose/world.hpp"

namespace papaya::census {

namespace {

using presence::Entry;
using presence::Node;
using presence::Part;
using presence::Verdict;

// Counted from the end of PMPI_Init, in which all ranks have usually met: each has announced itself long before.
constexpr std::uint64_t node_ns = 2'000'000'000;
// Rank 0 for all nodes, whose first messages make connections. Whoever waits for another's decision waits longer.
constexpr std::uint64_t job_ns(int ranks) noexcept {
  return 4'000'000'000 + static_cast<std::uint64_t>(ranks) * 1'000'000;
}
constexpr std::uint64_t answer_ns(int ranks) noexcept {
  return 2 * job_ns(ranks);
}
constexpr std::uint64_t bystander_ns(int ranks) noexcept {
  return 3 * job_ns(ranks);
}
constexpr int below_largest_tag = 20557;  // few programs use tags up there

enum class Why : std::uint32_t { nothing, missing, aside, other_build };

// What is known of some ranks of the job. It is sent as it is, and stays so from version to version.
struct Finding {
  std::uint64_t build = 0;
  Verdict verdict = Verdict::together;
  Why why = Why::nothing;
  std::int32_t ranks = 1;             // that it is about
  std::int32_t example = -1;          // aside, other_build: a rank of which that is true
  std::int32_t absent = 0;            // missing: so many
  char version[16] = PAPAYA_VERSION;  // other_build: the other's

  void object(Why reason, int rank) noexcept {
    if (verdict == Verdict::natively) return;
    verdict = Verdict::natively;
    why = reason;
    example = rank;
  }
};

int tag() noexcept {
  void* value = nullptr;
  int found = 0;
  PMPI_Comm_get_attr(world::comm(), MPI_TAG_UB, &value, &found);
  // The least that MPI allows is 32767.
  return (found != 0 && value != nullptr ? *static_cast<int*>(value) : 32767) - below_largest_tag;
}

class Waiting {
 public:
  explicit Waiting(std::uint64_t at_most_ns) noexcept : end_ns_(clock::monotonic_ns() + at_most_ns) {}

  // Between looks; false when the time is over. MPI moves on meanwhile: another rank may not be out of PMPI_Init yet.
  bool goes_on() noexcept {
    int found = 0;
    PMPI_Iprobe(MPI_ANY_SOURCE, tag_, world::comm(), &found, MPI_STATUS_IGNORE);
    if (++looks_ < 200) {
      sched_yield();
      return true;
    }
    const timespec pause{0, 100'000};
    nanosleep(&pause, nullptr);
    return clock::monotonic_ns() < end_ns_;
  }

 private:
  const std::uint64_t end_ns_;
  const int tag_ = tag();
  int looks_ = 0;
};

// All that is on the roster by now; `ranks` says how many that are.
Finding look(Node& node) noexcept {
  Finding found;
  found.build = node.build;
  found.ranks = 0;
  for (std::uint32_t i = 0; i < node.ranks; ++i) {
    const Entry& entry = node.roster->entries()[i];
    const Part part = entry.part.load(std::memory_order_acquire);
    if (part == Part::unknown) continue;
    ++found.ranks;
    if (part == Part::stands_aside) {
      found.object(Why::aside, entry.rank);
    } else if (entry.build != node.build) {
      found.object(Why::other_build, entry.rank);
      std::copy(std::begin(entry.version), std::end(entry.version), std::begin(found.version));
    }
  }
  return found;
}

std::vector<bool> present(Node& node, int ranks) {
  std::vector<bool> there(static_cast<std::size_t>(ranks));
  for (std::uint32_t i = 0; i < node.ranks; ++i)
    if (const Entry& entry = node.roster->entries()[i];
        entry.part.load(std::memory_order_acquire) != Part::unknown && entry.rank >= 0 && entry.rank < ranks)
      there[static_cast<std::size_t>(entry.rank)] = true;
  return there;
}

// What holds for this node's ranks. `decided`: by this rank.
Finding settle_node(Node& node, void (*remove_name)(Node&), bool& decided) noexcept {
  Finding found = look(node);
  for (Waiting waiting(node_ns);
       static_cast<std::uint32_t>(found.ranks) < node.ranks && found.verdict == Verdict::together; found = look(node)) {
    if (node.roster->here.load(std::memory_order_acquire) != Verdict::open) break;
    if (waiting.goes_on()) continue;
    found.absent = static_cast<int>(node.ranks) - found.ranks;
    found.object(Why::missing, -1);
    break;
  }
  // Else the last to come has done it. Whoever comes yet meets nobody, and goes on natively too.
  if (static_cast<std::uint32_t>(found.ranks) < node.ranks) remove_name(node);
  found.ranks = static_cast<int>(node.ranks);
  Verdict before = Verdict::open;
  decided = node.roster->here.compare_exchange_strong(before, found.verdict, std::memory_order_acq_rel);
  if (!decided) found.verdict = before;
  return found;
}

// "rank 1", "ranks 1, 3 and 6 others"
std::string ranks_without(const std::vector<bool>& there) {
  std::string list;
  int count = 0;
  for (std::size_t rank = 0; rank < there.size(); ++rank)
    if (!there[rank] && ++count <= 8) list += fmt::format("{}{}", list.empty() ? "" : ", ", rank);
  return fmt::format("rank{} {}{}", count == 1 ? "" : "s", list,
                     count > 8 ? fmt::format(" and {} others", count - 8) : "");
}

// `absent`: which ranks are missing, if that is known.
void say(const Finding& found, int speaker, const std::string& absent) {
  constexpr const char* otherwise = "every call goes straight to MPI, nothing is recorded.";
  switch (found.why) {
    case Why::missing:
      log::warn(fmt::format(
          "{} run{} without papaya or behind another tool, without the /dev/shm of the others, or come{} to MPI_Init "
          "much later; so {} Preload papaya into all ranks or none, and let those of a node share /dev/shm.",
          absent.empty() ? fmt::format("{} rank{}", found.absent, found.absent == 1 ? "" : "s") : absent,
          found.absent == 1 ? "s" : "", found.absent == 1 ? "s" : "", otherwise));
      break;
    case Why::aside:
      log::warn(fmt::format("rank {} cannot use papaya, so on all ranks {}", found.example, otherwise));
      break;
    case Why::other_build:
      log::warn(fmt::format(
          "rank {} has another build of papaya ({}) than rank {} ({}), so {} Install one build for all ranks.",
          found.example, found.version, speaker, PAPAYA_VERSION, otherwise));
      break;
    case Why::nothing:
      break;
  }
}

// Rank 0 with what holds for its node's ranks: adds what the other nodes say, and answers.
Finding gather(Finding all, int ranks) {
  const int message_tag = tag();
  struct Source {
    MPI_Comm comm;
    int rank;
  };
  std::vector<Source> sources;
  int heard = all.ranks;
  for (Waiting waiting(job_ns(ranks)); heard < ranks;) {
    int there = 0;
    MPI_Status status;
    MPI_Comm comm = MPI_COMM_NULL;
    for (MPI_Comm one : world::comms()) {
      PMPI_Iprobe(MPI_ANY_SOURCE, message_tag, comm = one, &there, &status);
      if (there != 0) break;
    }
    if (there == 0) {
      if (waiting.goes_on()) continue;
      break;
    }
    int bytes = 0;
    PMPI_Get_count(&status, MPI_BYTE, &bytes);
    if (bytes != static_cast<int>(sizeof(Finding))) break;  // a message of the program's, from a rank without papaya
    Finding other;
    PMPI_Recv(&other, bytes, MPI_BYTE, status.MPI_SOURCE, message_tag, comm, MPI_STATUS_IGNORE);
    sources.push_back({comm, status.MPI_SOURCE});
    heard += other.ranks;
    if (other.verdict != Verdict::together && all.verdict == Verdict::together) {
      all.object(other.why, other.example);
      all.absent = other.absent;
      std::copy(std::begin(other.version), std::end(other.version), std::begin(all.version));
    } else if (other.build != all.build && all.verdict == Verdict::together) {
      all.object(Why::other_build, status.MPI_SOURCE);
      std::copy(std::begin(other.version), std::end(other.version), std::begin(all.version));
    }
  }
  if (heard < ranks && all.verdict == Verdict::together) {
    all.absent = ranks - heard;
    all.object(Why::missing, -1);
  }
  std::vector<MPI_Request> answers(sources.size());
  for (std::size_t i = 0; i < sources.size(); ++i)
    PMPI_Isend(&all, sizeof all, MPI_BYTE, sources[i].rank, message_tag, sources[i].comm, &answers[i]);
  PMPI_Waitall(static_cast<int>(answers.size()), answers.data(), MPI_STATUSES_IGNORE);
  return all;
}

// A node's speaker.
Verdict ask_rank_0(const Finding& mine, int ranks) {
  Finding answer;
  MPI_Request requests[2];
  PMPI_Irecv(&answer, sizeof answer, MPI_BYTE, 0, tag(), world::comm(), &requests[0]);
  PMPI_Isend(&mine, sizeof mine, MPI_BYTE, 0, tag(), world::comm(), &requests[1]);
  int done = 0;
  for (Waiting waiting(answer_ns(ranks)); PMPI_Testall(2, requests, &done, MPI_STATUSES_IGNORE), done == 0;)
    if (!waiting.goes_on())
      end_job(
          "rank 0 runs without papaya on another node, or does not answer, and papaya has asked it by a message that "
          "the program could receive; so the job ends. Preload papaya into all ranks or none.",
          1, world::comm());
  return answer.verdict;
}

bool take_census(Node& node, void (*remove_name)(Node&), int rank, int ranks) {
  Finding found;
  found.build = node.build;
  bool decided = true;
  // The launcher's rank may be another job's, inside which this one was started.
  const bool has_roster = node.mine != nullptr && node.rank == rank;
  if (has_roster) found = settle_node(node, remove_name, decided);
  Verdict verdict = found.verdict;
  if (has_roster && node.ranks == static_cast<std::uint32_t>(ranks)) {
    if (decided) say(found, rank, found.why == Why::missing ? ranks_without(present(node, ranks)) : "");
    return verdict == Verdict::together;
  }
  const bool has_rank_0 = has_roster && present(node, ranks)[0];
  if (rank == 0) {
    found = gather(found, ranks);
    say(found, rank, "");
    verdict = found.verdict;
  } else if (decided && !has_rank_0) {
    verdict = ask_rank_0(found, ranks);
  } else {
    verdict = Verdict::open;
    for (Waiting waiting(bystander_ns(ranks));
         (verdict = node.roster->whole.load(std::memory_order_acquire)) == Verdict::open;)
      if (!waiting.goes_on())
        end_job("no decision has come whether all ranks have papaya, so the job ends. Please report this.", 1,
                world::comm());
  }
  if (has_roster) node.roster->whole.store(verdict, std::memory_order_release);
  return verdict == Verdict::together;
}

}  // namespace

bool all_take_part(Node& node, void (*remove_name)(Node&), int rank, int ranks) noexcept {
  return ranks == 1 || take_census(node, remove_name, rank, ranks);
}

}  // namespace papaya::census
