#include "tools/otf2.hpp"

#if PAPAYA_HAS_OTF2

#include <fmt/format.h>
#include <otf2/otf2.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "base/mpi_name.hpp"
#include "base/version.hpp"
#include "profiler/analysis/communicator_names.hpp"
#include "profiler/analysis/weak.hpp"
#include "tools/weak_arguments.hpp"

namespace papaya::otf2 {

namespace {

// Of events in memory for each location that is being written, the least that OTF2 takes; and the files of the run
// whose locations are written at a time.
constexpr std::uint64_t event_chunk_bytes = 1 << 18;
constexpr std::size_t files_at_once = 128;
constexpr std::uint64_t definition_chunk_bytes = 4 << 20;

enum Attribute : OTF2_AttributeRef {
  late,
  last,
  call_number,
  start_number,
  algorithm,
  reason,
  communicator_name,
  staleness,
  ranks_of_result,
  share,
  waited
};
constexpr OTF2_RegionRef first_weak_region = collective_count * form_count;
constexpr OTF2_ParameterRef site_parameter = 0;
enum Group : OTF2_GroupRef { locations_group, self_group, first_group };

struct Operation {
  OTF2_CollectiveOp op;
  OTF2_RegionRole role;
};

Operation operation_of(Collective collective) {
  switch (collective) {
    case Collective::barrier:
      return {OTF2_COLLECTIVE_OP_BARRIER, OTF2_REGION_ROLE_BARRIER};
    case Collective::bcast:
      return {OTF2_COLLECTIVE_OP_BCAST, OTF2_REGION_ROLE_COLL_ONE2ALL};
    case Collective::gather:
      return {OTF2_COLLECTIVE_OP_GATHER, OTF2_REGION_ROLE_COLL_ALL2ONE};
    case Collective::gatherv:
      return {OTF2_COLLECTIVE_OP_GATHERV, OTF2_REGION_ROLE_COLL_ALL2ONE};
    case Collective::scatter:
      return {OTF2_COLLECTIVE_OP_SCATTER, OTF2_REGION_ROLE_COLL_ONE2ALL};
    case Collective::scatterv:
      return {OTF2_COLLECTIVE_OP_SCATTERV, OTF2_REGION_ROLE_COLL_ONE2ALL};
    case Collective::allgather:
      return {OTF2_COLLECTIVE_OP_ALLGATHER, OTF2_REGION_ROLE_COLL_ALL2ALL};
    case Collective::allgatherv:
      return {OTF2_COLLECTIVE_OP_ALLGATHERV, OTF2_REGION_ROLE_COLL_ALL2ALL};
    case Collective::alltoall:
      return {OTF2_COLLECTIVE_OP_ALLTOALL, OTF2_REGION_ROLE_COLL_ALL2ALL};
    case Collective::alltoallv:
      return {OTF2_COLLECTIVE_OP_ALLTOALLV, OTF2_REGION_ROLE_COLL_ALL2ALL};
    case Collective::alltoallw:
      return {OTF2_COLLECTIVE_OP_ALLTOALLW, OTF2_REGION_ROLE_COLL_ALL2ALL};
    case Collective::reduce:
      return {OTF2_COLLECTIVE_OP_REDUCE, OTF2_REGION_ROLE_COLL_ALL2ONE};
    case Collective::allreduce:
      return {OTF2_COLLECTIVE_OP_ALLREDUCE, OTF2_REGION_ROLE_COLL_ALL2ALL};
    case Collective::reduce_scatter:
      return {OTF2_COLLECTIVE_OP_REDUCE_SCATTER, OTF2_REGION_ROLE_COLL_ALL2ALL};
    case Collective::reduce_scatter_block:
      return {OTF2_COLLECTIVE_OP_REDUCE_SCATTER_BLOCK, OTF2_REGION_ROLE_COLL_ALL2ALL};
    case Collective::scan:
      return {OTF2_COLLECTIVE_OP_SCAN, OTF2_REGION_ROLE_COLL_OTHER};
    case Collective::exscan:
      return {OTF2_COLLECTIVE_OP_EXSCAN, OTF2_REGION_ROLE_COLL_OTHER};
    case Collective::neighbor_allgather:  // no operation of OTF2's: they are regions alone
    case Collective::neighbor_allgatherv:
    case Collective::neighbor_alltoall:
    case Collective::neighbor_alltoallv:
    case Collective::neighbor_alltoallw:
      break;
  }
  return {OTF2_COLLECTIVE_OP_BARRIER, OTF2_REGION_ROLE_COLL_OTHER};
}

// What a rank hands over and gets, as far as the record says: the shares of the v and w forms it gets are not known.
std::pair<std::uint64_t, std::uint64_t> bytes_of(const trace::Event& event, bool is_root, std::uint64_t ranks) {
  const std::uint64_t one = event.bytes;
  std::uint64_t all = 0;
  if (__builtin_mul_overflow(one, ranks, &all)) all = ~std::uint64_t{0};
  switch (static_cast<Collective>(event.collective)) {
    case Collective::barrier:
      return {0, 0};
    case Collective::bcast:
      return is_root ? std::pair{one, std::uint64_t{0}} : std::pair{std::uint64_t{0}, one};
    case Collective::reduce:
      return {one, is_root ? one : 0};
    case Collective::gather:
      return {one, is_root ? all : 0};
    case Collective::scatter:
      return {is_root ? all : 0, one};
    case Collective::scatterv:
      return {0, one};
    case Collective::allgather:
      return {one, all};
    case Collective::alltoall:
      return {all, all};
    case Collective::reduce_scatter_block:
      return {all, one};
    case Collective::allreduce:
    case Collective::scan:
    case Collective::exscan:
      return {one, one};
    default:
      return {one, 0};
  }
}

OTF2_FlushType flush(void*, OTF2_FileType, OTF2_LocationRef, void*, bool) {
  return OTF2_FLUSH;
}

OTF2_ErrorCode ignore_error(void*, const char*, uint64_t, const char*, OTF2_ErrorCode code, const char*, va_list) {
  return code;
}

struct Communicator {
  OTF2_CommRef self = 0;
  std::uint64_t parent_id = 0;
  std::int32_t size = 1;
  std::map<std::int32_t, std::uint64_t> files;  // by rank in it
  std::uint64_t rivals = 0;                     // ranks of which there are several: an inter-communicator
};

struct Location {
  OTF2_LocationRef self;
  std::uint32_t thread;
  std::uint64_t events;
};

// A call on its thread's timeline.
struct Slice {
  double begin_ns;
  double end_ns;  // NAN: it has not ended
  std::variant<Call, WeakCall> call;
};

// Regions nest. Of a call that the program made in parts only the time inside remains, before its end.
Slice slice_of(const WeakCall& call) {
  const bool is_split = is_in_parts(*call.event, call.exit_ns - call.arrival_ns);
  return {is_split ? call.exit_ns - static_cast<double>(call.event->inside_ns) : call.arrival_ns, call.exit_ns, call};
}

// What is being written of a thread.
struct Timeline {
  struct Open {
    Slice slice;
    std::uint64_t end;
  };
  Location* location;
  OTF2_EvtWriter* writer;
  std::vector<Slice> weak{};  // by their beginning
  std::size_t next_weak = 0;
  std::optional<Slice> next{};  // written when it is known what follows
  std::vector<Open> open{};
  std::uint64_t now = 0;
};

class Archive {
 public:
  explicit Archive(const Input& input) : input_(input) {
    OTF2_Error_RegisterCallback(ignore_error, nullptr);
    string("");
    for (std::size_t f = 0; f < input.run.files.size(); ++f)
      for (const trace::Communicator& row : input.run.files[f].communicators) {
        Communicator& communicator = communicators_[row.id];
        communicator.parent_id = row.parent_id;
        communicator.size = row.size;
        if (row.size > 1 && !communicator.files.try_emplace(row.rank, f).second) ++communicator.rivals;
      }
    // Parents first, and numbered so: readers want both. A damaged file may make a circle of them.
    std::set<std::uint64_t> seen;
    const auto add_with_parents = [&](const auto& again, std::uint64_t id) -> void {
      const auto entry = communicators_.find(id);
      if (entry == communicators_.end() || !seen.insert(id).second) return;
      again(again, entry->second.parent_id);
      entry->second.self = static_cast<OTF2_CommRef>(in_order_.size());
      in_order_.push_back(entry);
    };
    for (const auto& [id, communicator] : communicators_) add_with_parents(add_with_parents, id);
  }

  bool write(const std::string& folder) {
    archive_.reset(OTF2_Archive_Open(folder.c_str(), "traces", OTF2_FILEMODE_WRITE, event_chunk_bytes,
                                     definition_chunk_bytes, OTF2_SUBSTRATE_POSIX, OTF2_COMPRESSION_NONE));
    if (archive_ == nullptr) return false;
    static constexpr OTF2_FlushCallbacks callbacks = {.otf2_pre_flush = flush, .otf2_post_flush = nullptr};
    check(OTF2_Archive_SetFlushCallbacks(archive_.get(), &callbacks, nullptr));
    check(OTF2_Archive_SetSerialCollectiveCallbacks(archive_.get()));
    check(OTF2_Archive_SetCreator(archive_.get(), "papaya " PAPAYA_VERSION));
    check(OTF2_Archive_OpenEvtFiles(archive_.get()));
    const std::size_t files = input_.run.files.size();
    locations_.resize(files);
    next_location_ = files;
    for (std::size_t first = 0; first < files; first += files_at_once)
      write_events(first, std::min(files, first + files_at_once));
    check(OTF2_Archive_CloseEvtFiles(archive_.get()));
    write_definitions();
    check(OTF2_Archive_Close(archive_.release()));
    return good_;
  }

 private:
  struct Close {
    void operator()(OTF2_Archive* archive) const { OTF2_Archive_Close(archive); }
  };

  void check(OTF2_ErrorCode code) { good_ = good_ && code == OTF2_SUCCESS; }

  OTF2_StringRef string(const std::string& text) {
    return strings_.try_emplace(text, static_cast<OTF2_StringRef>(strings_.size())).first->second;
  }
  std::uint64_t time(double ns) const {
    return static_cast<std::uint64_t>(std::llround(std::clamp(ns, input_.begin_ns, input_.end_ns) - input_.begin_ns));
  }
  static OTF2_RegionRef region_of(const trace::Event& event) {
    return event.collective * static_cast<OTF2_RegionRef>(form_count) + event.form;
  }

  void write_events(std::size_t first, std::size_t last) {
    std::vector<std::map<std::uint32_t, Timeline>> timelines(last - first);  // by thread
    const auto timeline_of = [&](std::size_t f, std::uint32_t thread) -> Timeline& {
      const auto [entry, is_new] = timelines[f - first].try_emplace(thread);
      if (is_new) open(f, thread, entry->second);
      return entry->second;
    };
    for (std::size_t f = first; f < last; ++f) {
      // A rank's first thread is there also without a call: communicators have it as their member.
      timeline_of(f, 0);
      for (const WeakCall& call : input_.weak_calls_of(f))
        timeline_of(f, call.event->thread).weak.push_back(slice_of(call));
      for (auto& [thread, timeline] : timelines[f - first])
        std::stable_sort(timeline.weak.begin(), timeline.weak.end(),
                         [](const Slice& a, const Slice& b) { return a.begin_ns < b.begin_ns; });
    }
    input_.read_calls(first, last, [&](std::size_t f, const Call& call) {
      Timeline& timeline = timeline_of(f, call.event.thread);
      add_weak(f, timeline, call.arrival_ns);
      add(f, timeline, {call.arrival_ns, call.exit_ns, call});
    });
    for (std::size_t f = first; f < last; ++f)
      for (auto& [thread, timeline] : timelines[f - first]) close(f, timeline);
  }

  void open(std::size_t f, std::uint32_t thread, Timeline& timeline) {
    Location& location = locations_[f][thread];
    location = {thread == 0 ? f : next_location_++, thread, 0};
    timeline.location = &location;
    timeline.writer = OTF2_Archive_GetEvtWriter(archive_.get(), location.self);
    good_ = good_ && timeline.writer != nullptr;
  }

  void close(std::size_t f, Timeline& timeline) {
    add_weak(f, timeline, std::numeric_limits<double>::infinity());
    if (timeline.writer == nullptr) return;
    if (timeline.next) write(f, timeline, *timeline.next, input_.end_ns);
    leave_until(f, timeline, ~std::uint64_t{0});
    check(OTF2_EvtWriter_GetNumberOfEvents(timeline.writer, &timeline.location->events));
    check(OTF2_Archive_CloseEvtWriter(archive_.get(), timeline.writer));
  }

  void add_weak(std::size_t f, Timeline& timeline, double before_ns) {
    for (; timeline.next_weak < timeline.weak.size() && timeline.weak[timeline.next_weak].begin_ns < before_ns;
         ++timeline.next_weak)
      add(f, timeline, timeline.weak[timeline.next_weak]);
  }

  void add(std::size_t f, Timeline& timeline, const Slice& slice) {
    if (timeline.writer == nullptr) return;
    if (timeline.next) write(f, timeline, *timeline.next, slice.begin_ns);
    timeline.next = slice;
  }

  void leave_until(std::size_t f, Timeline& timeline, std::uint64_t until) {
    std::vector<Timeline::Open>& open = timeline.open;
    for (; !open.empty() && open.back().end <= until; open.pop_back()) {
      timeline.now = std::max(timeline.now, open.back().end);
      std::visit([&](const auto& call) { write_leave(f, timeline.writer, call, timeline.now); },
                 open.back().slice.call);
    }
  }

  // Calls of a thread nest: one may be made by an error handler within another. A call that never left ends with
  // the next, at `never_ns`, for which it was left by a jump, or with the record.
  void write(std::size_t f, Timeline& timeline, const Slice& slice, double never_ns) {
    const std::uint64_t begin = time(slice.begin_ns);
    leave_until(f, timeline, begin);
    std::uint64_t end = std::max(begin, time(std::isnan(slice.end_ns) ? never_ns : slice.end_ns));
    if (!timeline.open.empty()) end = std::min(end, timeline.open.back().end);
    timeline.now = std::max(timeline.now, begin);
    std::visit([&](const auto& call) { write_enter(timeline.writer, call, timeline.now); }, slice.call);
    timeline.open.push_back({slice, end});
  }

  // Those in which ranks met. Nonblocking calls only begin here, and their end is not recorded.
  static bool is_collective(const Call& call) {
    return static_cast<Form>(call.event.form) == Form::blocking && call.event.call != trace::no_call &&
           !std::isnan(call.exit_ns);
  }

  void write_enter(OTF2_EvtWriter* writer, const Call& call, std::uint64_t now) {
    OTF2_AttributeList* const list = list_.get();
    if (!std::isnan(call.late_ns)) {
      check(OTF2_AttributeList_AddDouble(list, late, call.late_ns / 1e3));
      check(OTF2_AttributeList_AddUint8(list, last, call.is_last ? 1 : 0));
    }
    if (call.event.call != trace::no_call)
      check(OTF2_AttributeList_AddUint64(list, call_number, trace::number_of(call.event)));
    if (static_cast<Form>(call.event.form) == Form::started && call.event.call != trace::no_call)
      check(OTF2_AttributeList_AddUint64(list, start_number, trace::starts_before(call.event.call)));
    check(OTF2_EvtWriter_Enter(writer, list, now, region_of(call.event)));
    if (!call.site->empty())
      check(OTF2_EvtWriter_ParameterString(writer, nullptr, now, site_parameter, string(*call.site)));
    if (is_collective(call)) check(OTF2_EvtWriter_MpiCollectiveBegin(writer, nullptr, now));
  }

  OTF2_RegionRef region_of(const WeakCall& call) {
    const std::string collective = report::clean_text(call.row->collective);
    const auto found = std::find(weak_regions_.begin(), weak_regions_.end(), collective);
    const auto number = static_cast<OTF2_RegionRef>(found - weak_regions_.begin());
    if (found == weak_regions_.end()) weak_regions_.push_back(collective);
    return first_weak_region + number;
  }

  void write_enter(OTF2_EvtWriter* writer, const WeakCall& call, std::uint64_t now) {
    OTF2_AttributeList* const list = list_.get();
    check(OTF2_AttributeList_AddUint64(list, call_number, call.event->clock));
    check(OTF2_AttributeList_AddStringRef(list, communicator_name, string(report::weak_communicator(*call.row))));
    check(OTF2_EvtWriter_Enter(writer, list, now, region_of(call)));
    if (!call.site->empty())
      check(OTF2_EvtWriter_ParameterString(writer, nullptr, now, site_parameter, string(*call.site)));
  }

  void write_leave(std::size_t, OTF2_EvtWriter* writer, const WeakCall& call, std::uint64_t now) {
    const trace::WeakEvent& event = *call.event;
    OTF2_AttributeList* const list = list_.get();
    const std::string values = report::clean_text(call.row->parameters);
    check(OTF2_AttributeList_AddStringRef(
        list, algorithm, string(report::clean_text(call.row->algorithm) + (values.empty() ? "" : ":" + values))));
    if (event.exit_ticks != 0) {
      if (event.oldest > 0)
        check(OTF2_AttributeList_AddUint64(list, staleness, event.clock - std::min(event.clock, event.oldest)));
      check(OTF2_AttributeList_AddInt32(list, ranks_of_result, event.ranks));
      check(OTF2_AttributeList_AddDouble(list, share, event.share));
      check(OTF2_AttributeList_AddDouble(list, waited, static_cast<double>(event.waited_ns) / 1e3));
    }
    check(OTF2_EvtWriter_Leave(writer, list, now, region_of(call)));
  }

  void write_leave(std::size_t f, OTF2_EvtWriter* writer, const Call& call, std::uint64_t now) {
    const trace::Event& event = call.event;
    const report::RankFile& file = input_.run.files[f];
    if (is_collective(call)) {
      const auto entry = communicators_.find(event.communicator);
      const bool is_known = entry != communicators_.end();
      const std::uint32_t root = is_known ? root_of(event, entry->second) : OTF2_COLLECTIVE_ROOT_NONE;
      const bool is_root = is_known && event.root >= 0 && is_rank(entry->second, event.root, f);
      const auto [sent, received] =
          bytes_of(event, is_root, is_known ? static_cast<std::uint64_t>(entry->second.size) : 1);
      check(OTF2_EvtWriter_MpiCollectiveEnd(writer, nullptr, now,
                                            operation_of(static_cast<Collective>(event.collective)).op,
                                            is_known ? entry->second.self : OTF2_UNDEFINED_COMM, root, sent, received));
    }
    OTF2_AttributeList* const list = list_.get();
    check(OTF2_AttributeList_AddStringRef(list, algorithm, string(report::algorithm_name(file, event.algorithm))));
    if (const std::string why = report::clean_text(file.texts->reason_names[event.reason]); !why.empty())
      check(OTF2_AttributeList_AddStringRef(list, reason, string(why)));
    check(OTF2_EvtWriter_Leave(writer, list, now, region_of(event)));
  }

  static bool is_rank(const Communicator& communicator, std::int32_t rank, std::size_t f) {
    if (communicator.size == 1) return rank == 0;
    const auto entry = communicator.files.find(rank);
    return entry != communicator.files.end() && entry->second == f;
  }

  // Its rank in the group, which leaves out the ranks without a record.
  static std::uint32_t root_of(const trace::Event& event, const Communicator& communicator) {
    if (event.root < 0) return OTF2_COLLECTIVE_ROOT_NONE;
    if (communicator.size == 1) return 0;
    const auto entry = communicator.files.find(event.root);
    if (entry == communicator.files.end() || communicator.rivals != 0) return OTF2_COLLECTIVE_ROOT_NONE;
    return static_cast<std::uint32_t>(std::distance(communicator.files.begin(), entry));
  }

  void write_definitions() {
    check(OTF2_Archive_OpenDefFiles(archive_.get()));
    for (const auto& of_file : locations_)
      for (const auto& [thread, location] : of_file) {
        OTF2_DefWriter* const writer = OTF2_Archive_GetDefWriter(archive_.get(), location.self);
        good_ = good_ && writer != nullptr;
        if (writer != nullptr) check(OTF2_Archive_CloseDefWriter(archive_.get(), writer));
      }
    check(OTF2_Archive_CloseDefFiles(archive_.get()));
    OTF2_GlobalDefWriter* const writer = OTF2_Archive_GetGlobalDefWriter(archive_.get());
    if (writer == nullptr) {
      good_ = false;
      return;
    }
    check(OTF2_GlobalDefWriter_WriteClockProperties(
        writer, 1'000'000'000, 0, time(input_.end_ns) + 1,
        static_cast<std::uint64_t>(std::max<std::int64_t>(0, input_.unix_ns))));
    write_regions(writer);
    write_attributes(writer);
    write_locations(writer);
    write_communicators(writer);
    check(OTF2_Archive_CloseGlobalDefWriter(archive_.get(), writer));
  }

  // A string is defined before the definition that names it. Those of events are known by now.
  OTF2_StringRef define(OTF2_GlobalDefWriter* writer, const std::string& text) {
    const OTF2_StringRef self = string(text);
    if (defined_.insert(self).second) check(OTF2_GlobalDefWriter_WriteString(writer, self, text.c_str()));
    return self;
  }

  void write_regions(OTF2_GlobalDefWriter* writer) {
    for (std::size_t c = 0; c < collective_count; ++c)
      for (std::size_t f = 0; f < form_count; ++f) {
        const auto collective = static_cast<Collective>(c);
        const OTF2_StringRef name = define(writer, mpi_name(collective, static_cast<Form>(f)));
        const OTF2_StringRef none = define(writer, "");
        check(OTF2_GlobalDefWriter_WriteRegion(writer, static_cast<OTF2_RegionRef>(c * form_count + f), name, name,
                                               none, operation_of(collective).role, OTF2_PARADIGM_MPI,
                                               OTF2_REGION_FLAG_NONE, none, 0, 0));
      }
    for (std::size_t i = 0; i < weak_regions_.size(); ++i) {
      const auto self = static_cast<OTF2_RegionRef>(first_weak_region + i);
      const OTF2_StringRef name = define(writer, "papaya " + weak_regions_[i]);
      const OTF2_StringRef none = define(writer, "");
      check(OTF2_GlobalDefWriter_WriteRegion(writer, self, name, name, none, OTF2_REGION_ROLE_COLL_OTHER,
                                             OTF2_PARADIGM_MPI, OTF2_REGION_FLAG_NONE, none, 0, 0));
    }
  }

  void write_attributes(OTF2_GlobalDefWriter* writer) {
    const auto attribute = [&](OTF2_AttributeRef self, const char* name, const char* description, OTF2_Type type) {
      const OTF2_StringRef name_ref = define(writer, name);
      check(OTF2_GlobalDefWriter_WriteAttribute(writer, self, name_ref, define(writer, description), type));
    };
    attribute(late, "late_us", "microseconds after the call's first arrival", OTF2_TYPE_DOUBLE);
    attribute(last, "last", "1: arrives last, by more than the clocks' error", OTF2_TYPE_UINT8);
    attribute(call_number, "call", "number of the call on its communicator", OTF2_TYPE_UINT64);
    attribute(start_number, "starts before", "of the operation that the call with this number has made",
              OTF2_TYPE_UINT64);
    attribute(algorithm, "algorithm", "that ran the call", OTF2_TYPE_STRING);
    attribute(reason, "why native", "why no algorithm of papaya's ran it", OTF2_TYPE_STRING);
    if (!weak_regions_.empty()) {
      attribute(communicator_name, "communicator", "of a weakly consistent collective", OTF2_TYPE_STRING);
      attribute(staleness, "staleness", "calls that the oldest contribution in the result is behind", OTF2_TYPE_UINT64);
      attribute(ranks_of_result, "ranks", "whose contributions are in the result", OTF2_TYPE_INT32);
      attribute(share, "share", "of the elements or ranks that took part", OTF2_TYPE_DOUBLE);
      attribute(waited, "waited_us", "microseconds for other ranks", OTF2_TYPE_DOUBLE);
    }
    check(OTF2_GlobalDefWriter_WriteParameter(writer, site_parameter, define(writer, "call site"),
                                              OTF2_PARAMETER_TYPE_STRING));
    for (const auto& [text, self] : std::map<std::string, OTF2_StringRef>(strings_.begin(), strings_.end()))
      define(writer, text);
  }

  void write_locations(OTF2_GlobalDefWriter* writer) {
    constexpr OTF2_SystemTreeNodeRef machine = 0;
    const OTF2_StringRef machine_name = define(writer, "machine");
    check(OTF2_GlobalDefWriter_WriteSystemTreeNode(writer, machine, machine_name, machine_name,
                                                   OTF2_UNDEFINED_SYSTEM_TREE_NODE));
    std::map<std::int32_t, OTF2_SystemTreeNodeRef> nodes;
    for (std::size_t f = 0; f < input_.run.files.size(); ++f) {
      const report::RankHeader& header = input_.run.files[f].header;
      const auto [node, is_new] = nodes.try_emplace(header.node, static_cast<OTF2_SystemTreeNodeRef>(nodes.size() + 1));
      if (is_new) {
        const OTF2_StringRef host = define(writer, report::clean_text(header.host));
        check(OTF2_GlobalDefWriter_WriteSystemTreeNode(writer, node->second, host, define(writer, "node"), machine));
      }
      const auto group = static_cast<OTF2_LocationGroupRef>(f);
      const std::string rank = fmt::format("rank {}", header.rank);
      check(OTF2_GlobalDefWriter_WriteLocationGroup(writer, group, define(writer, rank),
                                                    OTF2_LOCATION_GROUP_TYPE_PROCESS, node->second,
                                                    OTF2_UNDEFINED_LOCATION_GROUP));
      for (const auto& [thread, location] : locations_[f]) {
        const std::string name = location.thread == 0 ? rank : fmt::format("{}, thread {}", rank, location.thread);
        check(OTF2_GlobalDefWriter_WriteLocation(writer, location.self, define(writer, name),
                                                 OTF2_LOCATION_TYPE_CPU_THREAD, location.events, group));
      }
    }
  }

  void write_communicators(OTF2_GlobalDefWriter* writer) {
    const OTF2_StringRef none = define(writer, "");
    const auto write_group = [&](OTF2_GroupRef self, OTF2_GroupType type, const std::vector<std::uint64_t>& members) {
      check(OTF2_GlobalDefWriter_WriteGroup(writer, self, none, type, OTF2_PARADIGM_MPI, OTF2_GROUP_FLAG_NONE,
                                            static_cast<std::uint32_t>(members.size()), members.data()));
    };
    std::vector<std::uint64_t> members;
    for (const auto& of_file : locations_) members.push_back(of_file.at(0).self);
    write_group(locations_group, OTF2_GROUP_TYPE_COMM_LOCATIONS, members);
    write_group(self_group, OTF2_GROUP_TYPE_COMM_SELF, {});
    OTF2_GroupRef next_group = first_group;
    const std::map<std::uint64_t, std::string> names = report::communicator_names(input_.run);
    for (const auto entry : in_order_) {
      const auto& [id, communicator] = *entry;
      OTF2_GroupRef group = self_group;
      if (communicator.size > 1) {
        members.clear();
        for (const auto& [rank, file] : communicator.files) members.push_back(file);
        group = next_group++;
        write_group(group, OTF2_GROUP_TYPE_COMM_GROUP, members);
      }
      const auto parent = communicators_.find(communicator.parent_id);
      const bool has_parent = parent != communicators_.end() && parent->second.self < communicator.self;
      check(OTF2_GlobalDefWriter_WriteComm(writer, communicator.self, define(writer, names.at(id)), group,
                                           has_parent ? parent->second.self : OTF2_UNDEFINED_COMM,
                                           OTF2_COMM_FLAG_NONE));
    }
  }

  struct DeleteList {
    void operator()(OTF2_AttributeList* list) const { OTF2_AttributeList_Delete(list); }
  };

  const Input& input_;
  bool good_ = true;
  std::unique_ptr<OTF2_Archive, Close> archive_;
  std::unique_ptr<OTF2_AttributeList, DeleteList> list_{OTF2_AttributeList_New()};
  std::unordered_map<std::string, OTF2_StringRef> strings_;
  std::set<OTF2_StringRef> defined_;
  std::map<std::uint64_t, Communicator> communicators_;                    // by id
  std::vector<std::map<std::uint64_t, Communicator>::iterator> in_order_;  // of their numbers
  std::vector<std::map<std::uint32_t, Location>> locations_;               // by file and thread
  std::vector<std::string> weak_regions_;                                  // collectives, by region
  OTF2_LocationRef next_location_ = 0;
};

}  // namespace

bool is_there() noexcept {
  return true;
}
bool write(const Input& input, const std::string& folder) {
  return Archive(input).write(folder);
}

}  // namespace papaya::otf2

#else

namespace papaya::otf2 {

bool is_there() noexcept {
  return false;
}
bool write(const Input&, const std::string&) {
  return false;
}

}  // namespace papaya::otf2

#endif
