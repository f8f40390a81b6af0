#include "tools/simulation/hierarchical.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "algorithms/patterns/leaders.hpp"
#include "algorithms/steps.hpp"

namespace papaya::simulation {

namespace {

constexpr std::size_t chunks_in_flight = 2;
constexpr std::size_t library_chunk_bytes = 256 << 10;
constexpr std::size_t largest_gathered = 4096;  // to the leader as a whole

class Hierarchical final : public Prepared {
 public:
  Hierarchical(const tuning::Rule& across, bool many_leaders, std::size_t chunk_bytes, std::size_t most_bytes,
               const Costs& costs, Processor& processor, wait::Policy& policy, bool keeps_data)
      : costs_(costs),
        processor_(processor),
        policy_(policy),
        keeps_data_(keeps_data),
        chunk_bytes_(
            std::min({chunk_bytes != 0 ? chunk_bytes : library_chunk_bytes, most_bytes, across.algorithm->max_bytes})),
        has_many_leaders_(many_leaders),
        cuts_as_leaders_(many_leaders && chunk_bytes == 0) {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    // Not MPI_Comm_split_type: SMPI gives out one of its own communicators, which must not be freed.
    const std::vector<simgrid::s4u::Host*> hosts = simgrid::s4u::Engine::get_instance()->get_all_hosts();
    const auto own = std::find(hosts.begin(), hosts.end(), simgrid::s4u::this_actor::get_host());
    MPI_Comm_split(MPI_COMM_WORLD, static_cast<int>(own - hosts.begin()), rank, &node_);
    MPI_Comm_rank(node_, &rank_);
    MPI_Comm_size(node_, &ranks_);
    if (many_leaders) MPI_Allreduce(&ranks_, &most_leaders_, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    MPI_Comm_split(MPI_COMM_WORLD, rank_ < most_leaders_ ? rank_ : MPI_UNDEFINED, rank, &leaders_);
    // A slot for each rank that writes here, for its operand or slice, or for its reduced slice; and of
    // leaders the result.
    slot_bytes_ = in_lines(chunk_bytes_);
    const int slots = 2 * ranks_ + 1;
    const SegmentShape shape{chunks_in_flight * static_cast<std::size_t>(slots) * slot_bytes_, 3 * ranks_};
    wire_ = SimulatedNotified::create(node_, shape, costs, processor, keeps_data);
    segments_.resize(static_cast<std::size_t>(ranks_));
    std::byte* const own_segment = wire_->segment();
    MPI_Allgather(&own_segment, sizeof own_segment, MPI_BYTE, segments_.data(), sizeof own_segment, MPI_BYTE, node_);
    if (rank_ >= most_leaders_) return;
    Team team{};
    MPI_Comm_rank(leaders_, &team.rank);
    MPI_Comm_size(leaders_, &team.size);
    team.policy = &policy_;
    for (Journey& journey : journeys_) {
      journey.wire =
          SimulatedNotified::create(leaders_, across.algorithm->segment(team.layout(), chunk_bytes_, across.values),
                                    costs, processor, keeps_data);
      team.wire = journey.wire.get();
      journey.across = across.algorithm->prepare(team, chunk_bytes_, across.values);
    }
    results_.resize(chunks_in_flight * (keeps_data ? slot_bytes_ : 0));
  }
  ~Hierarchical() override {
    for (Journey& journey : journeys_) journey.across.reset();
    MPI_Barrier(MPI_COMM_WORLD);
    for (Journey& journey : journeys_) journey.wire.reset();
    wire_.reset();
    if (leaders_ != MPI_COMM_NULL) MPI_Comm_free(&leaders_);
    MPI_Comm_free(&node_);
  }

  bool run(const Operands& operands, wait::Site& site) override {
    operands_ = &operands;
    const std::size_t element = operands.reduction->element_bytes;
    const std::size_t most =
        cuts_as_leaders_ ? patterns::leaders_chunk_bytes(operands.bytes, chunk_bytes_) : chunk_bytes_;
    const std::size_t per_chunk = std::max<std::size_t>(most / element, 1);
    const std::size_t chunks = (operands.count + per_chunk - 1) / per_chunk;
    const std::uint64_t before = number_;
    number_ += chunks;
    const auto chunk_at = [&](std::size_t i) {
      const std::size_t first = i * per_chunk;
      return chunk_of(before + i + 1, first * element, std::min(per_chunk, operands.count - first));
    };
    constexpr std::size_t behind = chunks_in_flight - 1;
    for (std::size_t i = 0; i < chunks + behind; ++i) {
      if (i < chunks) reduce(chunk_at(i), site);
      if (i >= behind && i - behind < chunks) take(chunk_at(i - behind), site);
    }
    return true;
  }
  bool is_missing(int) const override { return false; }

 private:
  struct Chunk {
    std::uint64_t number;
    std::size_t offset;  // bytes
    std::size_t elements;
    int leaders;
  };
  // As many as hierarchical_leaders has.
  Chunk chunk_of(std::uint64_t number, std::size_t offset, std::size_t elements) const {
    const std::size_t bytes = elements * operands_->reduction->element_bytes;
    return {number, offset, elements, patterns::leaders_of(bytes, most_leaders_)};
  }
  bool leads(const Chunk& chunk) const noexcept { return rank_ < chunk.leaders; }

  // Notifications: what rank r wrote here, its reduced slice, the result.
  int given_by(int rank) const { return rank; }
  int reduced_by(int rank) const { return ranks_ + rank; }
  int result_of(int leader) const { return 2 * ranks_ + leader; }
  std::size_t slot_offset(const Chunk& chunk, int id) const {
    return ((chunk.number % chunks_in_flight) * static_cast<std::size_t>(2 * ranks_ + 1) +
            static_cast<std::size_t>(id)) *
           slot_bytes_;
  }
  // Of the ranks, or of the leaders where there are several.
  std::size_t slice_begin(const Chunk& chunk, int slice) const {
    const int slices = chunk.leaders > 1 ? chunk.leaders : ranks_;
    return chunk.elements * static_cast<std::size_t>(slice) / static_cast<std::size_t>(slices);
  }
  std::size_t slice_elements(const Chunk& chunk, int slice) const {
    return slice_begin(chunk, slice + 1) - slice_begin(chunk, slice);
  }

  void wait_for(int id, std::uint64_t value, wait::Site& site) {
    const auto has_come = [&] {
      progress();
      return wire_->look(id) >= value;
    };
    wire_->wait(policy_, site, has_come, this);
  }

  void reduce(const Chunk& chunk, wait::Site& site) {
    if (chunk.leaders == 1)
      reduce_whole(chunk, site);
    else
      reduce_slice(chunk, site);
    if (leads(chunk)) start_journey(chunk);
  }
  void take(const Chunk& chunk, wait::Site& site) {
    if (leads(chunk)) finish_journey(chunk, site);
    if (rank_ != 0 || chunk.leaders > 1) copy_out(chunk, site);
  }

  // Onto the leader: into its bank of results_.
  void reduce_whole(const Chunk& chunk, wait::Site& site) {
    const Reduction& reduction = *operands_->reduction;
    const std::size_t element = reduction.element_bytes;
    const auto* const own = static_cast<const std::byte*>(operands_->send) + chunk.offset;
    const std::size_t bytes = chunk.elements * element;
    if (bytes <= largest_gathered) {
      if (rank_ != 0) {
        wire_->write_notify(0, slot_offset(chunk, given_by(rank_)), own, bytes, given_by(rank_), chunk.number);
        return;
      }
      const std::byte* sum = own;
      for (int r = 1; r < ranks_; ++r) {
        wait_for(given_by(r), chunk.number, site);
        reduction.combine(reduction, sum, wire_->segment() + slot_offset(chunk, given_by(r)), bank(chunk, 0),
                          chunk.elements);
        sum = bank(chunk, 0);
      }
      if (keeps_data_ && sum == own) std::memcpy(bank(chunk, 0), own, bytes);
      return;
    }
    for (int i = 1; i < ranks_; ++i) {
      const int to = (rank_ + i) % ranks_;
      const std::size_t begin = slice_begin(chunk, to);
      wire_->write_notify(to, slot_offset(chunk, given_by(rank_)), own + begin * element,
                          (slice_begin(chunk, to + 1) - begin) * element, given_by(rank_), chunk.number);
    }
    const std::size_t begin = slice_begin(chunk, rank_);
    const std::size_t elements = slice_begin(chunk, rank_ + 1) - begin;
    std::byte* const sum = rank_ == 0 ? bank(chunk, 0) : own_slice(elements * element);
    const std::byte* left = own + begin * element;
    for (int i = 1; i < ranks_; ++i) {
      const int from = (rank_ + i) % ranks_;
      wait_for(given_by(from), chunk.number, site);
      reduction.combine(reduction, left, wire_->segment() + slot_offset(chunk, given_by(from)), sum, elements);
      left = sum;
    }
    if (rank_ != 0) {
      wire_->write_notify(0, slot_offset(chunk, reduced_by(rank_)), sum, elements * element, reduced_by(rank_),
                          chunk.number);
      return;
    }
    if (keeps_data_ && left != sum) std::memcpy(sum, left, elements * element);
    for (int r = 1; r < ranks_; ++r) {
      wait_for(reduced_by(r), chunk.number, site);
      if (!keeps_data_) continue;
      const std::size_t from = slice_begin(chunk, r);
      std::memcpy(bank(chunk, from * element), wire_->segment() + slot_offset(chunk, reduced_by(r)),
                  (slice_begin(chunk, r + 1) - from) * element);
    }
  }

  // Onto the leaders, a slice to each: into their banks of results_.
  void reduce_slice(const Chunk& chunk, wait::Site& site) {
    const Reduction& reduction = *operands_->reduction;
    const std::size_t element = reduction.element_bytes;
    const auto* const own = static_cast<const std::byte*>(operands_->send) + chunk.offset;
    for (int i = 0; i < ranks_; ++i)
      if (const int to = (rank_ + i) % ranks_; to < chunk.leaders && to != rank_) {
        wire_->write_notify(to, slot_offset(chunk, given_by(rank_)), own + slice_begin(chunk, to) * element,
                            slice_elements(chunk, to) * element, given_by(rank_), chunk.number);
        progress();
      }
    if (!leads(chunk)) return;
    const std::byte* left = own + slice_begin(chunk, rank_) * element;
    for (int i = 1; i < ranks_; ++i) {
      const int from = (rank_ + i) % ranks_;
      wait_for(given_by(from), chunk.number, site);
      reduction.combine(reduction, left, wire_->segment() + slot_offset(chunk, given_by(from)), bank(chunk, 0),
                        slice_elements(chunk, rank_));
      left = bank(chunk, 0);
    }
  }

  // A chunk between the nodes.
  struct Journey {
    std::unique_ptr<SimulatedNotified> wire;
    std::unique_ptr<Prepared> across;
    Operands operands{};
    bool is_under_way = false;

    OverWire& steps() const noexcept { return *across->split_phase(); }
  };
  Journey& journey_of(const Chunk& chunk) noexcept { return journeys_[chunk.number % chunks_in_flight]; }
  // hierarchical_leaders looks after its chunks while it copies and combines, hierarchical_rabenseifner where it waits.
  void progress() {
    for (const Journey& journey : journeys_)
      if (journey.is_under_way) {
        if (has_many_leaders_) processor_.catch_up();
        journey.steps().progress();
      }
  }

  void start_journey(const Chunk& chunk) {
    Journey& journey = journey_of(chunk);
    journey.is_under_way = true;
    journey.operands = {};
    journey.operands.send = journey.operands.receive = bank(chunk, 0);
    journey.operands.count = chunk.leaders > 1 ? slice_elements(chunk, rank_) : chunk.elements;
    journey.operands.bytes = journey.operands.count * operands_->reduction->element_bytes;
    journey.operands.root = -1;
    journey.operands.reduction = operands_->reduction;
    journey.steps().start(journey.operands);
    progress();
  }

  // One leader copies the result to its place and for the others; several have it where all copy it from.
  void finish_journey(const Chunk& chunk, wait::Site& site) {
    Journey& journey = journey_of(chunk);
    const auto has_ended = [&] {
      progress();
      return journey.steps().progress();
    };
    journey.wire->wait(policy_, site, has_ended, this);
    journey.is_under_way = false;
    const std::size_t bytes = journey.operands.bytes;
    if (chunk.leaders == 1) processor_.work(static_cast<double>(bytes) * costs_.copy_s_per_byte);
    if (keeps_data_) {
      std::memcpy(wire_->segment() + slot_offset(chunk, 2 * ranks_), bank(chunk, 0), bytes);
      if (chunk.leaders == 1)
        std::memcpy(static_cast<std::byte*>(operands_->receive) + chunk.offset, bank(chunk, 0), bytes);
    }
    for (int r = 0; r < ranks_; ++r)
      if (r != rank_) wire_->notify(r, result_of(rank_), chunk.number);
  }

  void copy_out(const Chunk& chunk, wait::Site& site) {
    const std::size_t element = operands_->reduction->element_bytes;
    for (int leader = 0; leader < chunk.leaders; ++leader) {
      if (leader != rank_) wait_for(result_of(leader), chunk.number, site);
      const std::size_t begin = chunk.leaders > 1 ? slice_begin(chunk, leader) : 0;
      const std::size_t bytes = (chunk.leaders > 1 ? slice_elements(chunk, leader) : chunk.elements) * element;
      processor_.work(static_cast<double>(bytes) * costs_.copy_s_per_byte);
      if (keeps_data_)
        std::memcpy(static_cast<std::byte*>(operands_->receive) + chunk.offset + begin * element,
                    segments_[static_cast<std::size_t>(leader)] + slot_offset(chunk, 2 * ranks_), bytes);
    }
  }

  // Where only time passes, some memory that is large enough.
  std::byte* bank(const Chunk& chunk, std::size_t offset) {
    return keeps_data_ ? results_.data() + chunk.number % chunks_in_flight * slot_bytes_ + offset
                       : static_cast<std::byte*>(operands_->receive);
  }
  std::byte* own_slice(std::size_t bytes) {
    if (!keeps_data_) return static_cast<std::byte*>(operands_->receive);
    slice_.resize(std::max(slice_.size(), bytes));
    return slice_.data();
  }

  const Costs costs_;
  Processor& processor_;
  wait::Policy& policy_;
  const bool keeps_data_;
  const std::size_t chunk_bytes_;
  const bool has_many_leaders_;
  const bool cuts_as_leaders_;
  std::size_t slot_bytes_ = 0;
  MPI_Comm node_ = MPI_COMM_NULL;
  MPI_Comm leaders_ = MPI_COMM_NULL;
  int rank_ = 0;  // on the node
  int ranks_ = 1;
  int most_leaders_ = 1;
  std::unique_ptr<SimulatedNotified> wire_;
  std::vector<std::byte*> segments_;                // of all ranks of the node
  std::array<Journey, chunks_in_flight> journeys_;  // of leaders
  std::vector<std::byte> results_;
  std::vector<std::byte> slice_;
  const Operands* operands_ = nullptr;
  std::uint64_t number_ = 0;  // of the last chunk
};

}  // namespace

std::unique_ptr<Prepared> make_hierarchical(const tuning::Rule& across, bool many_leaders, std::size_t chunk_bytes,
                                            std::size_t most_bytes, const Costs& costs, Processor& processor,
                                            wait::Policy& policy, bool keeps_data) {
  return std::make_unique<Hierarchical>(across, many_leaders, chunk_bytes, most_bytes, costs, processor, policy,
                                        keeps_data);
}

}  // namespace papaya::simulation
