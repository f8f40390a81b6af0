#include "profiler/analysis/patterns_of_sites.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "profiler/analysis/archive.hpp"

namespace papaya::report {

namespace {

// `most often` gives the class its name even where another predictor is better by this little.
constexpr double as_good = 0.1;
// A sequence is foretold from its third call on, when every predictor has something to go by.
constexpr std::uint64_t calls_to_learn = 2;
// Of turns: the longest after which a rank is looked for again. The shortest, 1, is `as before`.
constexpr std::size_t longest_turn = 16;

struct Words {
  const char* name;
  const char* text;
};

const Words& words_of(PatternClass pattern) {
  static constexpr Words words[] = {{"unknown", "too few imbalanced calls to tell"},
                                    {"balanced", "balanced"},
                                    {"persistent", "persistent straggler"},
                                    {"rotating", "rotating"},
                                    {"drifting", "drifting"},
                                    {"random", "random"}};
  return words[static_cast<std::size_t>(pattern)];
}

// The most frequent of what was counted; of equals the one that got there first.
class Mode {
 public:
  void count(std::int32_t value) {
    ++all_;
    const std::uint64_t times = ++counts_[value];
    if (times <= most_) return;
    most_ = times;
    value_ = value;
  }
  std::int32_t value() const { return value_; }
  std::uint64_t all() const { return all_; }
  bool is_half() const { return 2 * most_ >= all_; }
  void merge(const Mode& next) {
    all_ += next.all_;
    for (const auto& [value, times] : next.counts_) {
      std::uint64_t& own = counts_[value];
      own += times;
      if (own <= most_) continue;
      most_ = own;
      value_ = value;
    }
  }
  void pack(Archive& archive) { archive(counts_, all_, most_, value_); }

 private:
  std::map<std::int32_t, std::uint64_t> counts_;
  std::uint64_t all_ = 0;
  std::uint64_t most_ = 0;
  std::int32_t value_ = -1;
};

// From `as_turns_before` on: the rank 2, 3 ... calls before.
enum Predictor : std::size_t { most_often, as_before, one_step_on, as_turns_before };
constexpr std::size_t predictor_count = as_turns_before + longest_turn - 1;

// Of one communicator.
struct Sequence {
  std::uint64_t calls = 0;
  std::int32_t previous = -1;
  std::array<std::int32_t, longest_turn> before{};  // who was last in call n, at n modulo its size
  Mode lasts;
  Mode steps;
};

class Foretelling {
 public:
  void add(const CallOfSite& call) {
    Sequence& sequence = sequences_[call.communicator];
    const std::int64_t size = call.ranks;
    if (sequence.calls >= calls_to_learn) {
      ++calls_;
      luck_ += 1.0 / static_cast<double>(size);
      right_[most_often] += sequence.lasts.value() == call.last ? 1 : 0;
      right_[as_before] += sequence.previous == call.last ? 1 : 0;
      right_[one_step_on] += (sequence.previous + std::int64_t{sequence.steps.value()}) % size == call.last ? 1 : 0;
      const std::uint64_t longest =
          std::min({std::uint64_t{longest_turn}, static_cast<std::uint64_t>(size), sequence.calls});
      for (std::uint64_t turn = 2; turn <= longest; ++turn)
        right_[as_turns_before + turn - 2] +=
            sequence.before[(sequence.calls - turn) % longest_turn] == call.last ? 1 : 0;
    }
    if (sequence.calls > 0)
      sequence.steps.count(static_cast<std::int32_t>((std::int64_t{call.last} - sequence.previous + size) % size));
    sequence.lasts.count(call.last);
    sequence.previous = call.last;
    sequence.before[sequence.calls % longest_turn] = call.last;
    ++sequence.calls;
  }
  void merge(const Foretelling& next) {
    for (std::size_t p = 0; p < predictor_count; ++p) right_[p] += next.right_[p];
    calls_ += next.calls_;
    luck_ += next.luck_;
  }
  void pack(Archive& archive) { archive(right_, calls_, luck_); }
  std::uint64_t calls() const { return calls_; }
  double success(Predictor predictor) const { return without_luck(right_[predictor]); }
  // Of the turn that is right most often.
  double turns() const { return without_luck(*std::max_element(right_.begin() + as_turns_before, right_.end())); }

 private:
  double without_luck(std::uint64_t right) const {
    return std::max(0.0, (static_cast<double>(right) - luck_) / (static_cast<double>(calls_) - luck_));
  }

  std::map<std::uint64_t, Sequence> sequences_;
  std::array<std::uint64_t, predictor_count> right_{};
  std::uint64_t calls_ = 0;
  double luck_ = 0;  // how many would be right by chance
};

}  // namespace

const char* text_of(PatternClass pattern) {
  return words_of(pattern).text;
}
const char* name_of(PatternClass pattern) {
  return words_of(pattern).name;
}

struct PatternFinder::State {
  double mean_ns = 0;
  bool is_balanced = false;
  std::uint64_t imbalanced = 0;
  Foretelling foretelling;
  std::map<std::uint64_t, Mode> stragglers;  // by communicator

  std::vector<Straggler> persistent_stragglers() const;
};

std::vector<Straggler> PatternFinder::State::persistent_stragglers() const {
  std::vector<Straggler> found;
  for (const auto& [communicator, mode] : stragglers)
    if (stragglers.size() == 1 || (mode.all() > calls_to_learn && mode.is_half()))
      found.push_back({communicator, mode.value(), mode.all()});
  std::stable_sort(found.begin(), found.end(),
                   [](const Straggler& a, const Straggler& b) { return a.imbalanced > b.imbalanced; });
  return found;
}

PatternFinder::PatternFinder(const SiteMeans& means) : state_(std::make_unique<State>()) {
  if (means.calls == 0) return;
  const auto calls = static_cast<double>(means.calls);
  state_->mean_ns = means.worst_ns / calls;
  state_->is_balanced = means.parts / calls <= 1;
}
PatternFinder::~PatternFinder() = default;
PatternFinder::PatternFinder(PatternFinder&&) noexcept = default;
PatternFinder& PatternFinder::operator=(PatternFinder&&) noexcept = default;

void PatternFinder::add(const CallOfSite& call) {
  if (state_->is_balanced || call.worst_ns <= std::max(call.least_ns, imbalanced_part * state_->mean_ns)) return;
  ++state_->imbalanced;
  state_->foretelling.add(call);
  state_->stragglers[call.communicator].count(call.rank);
}

void PatternFinder::merge(const PatternFinder& next) {
  state_->imbalanced += next.state_->imbalanced;
  state_->foretelling.merge(next.state_->foretelling);
  for (const auto& [communicator, mode] : next.state_->stragglers) state_->stragglers[communicator].merge(mode);
}

void PatternFinder::pack(Archive& archive) {
  archive(state_->imbalanced, state_->foretelling, state_->stragglers);
}

SitePattern PatternFinder::take() const {
  SitePattern result;
  if (state_->is_balanced) {
    result.pattern = PatternClass::balanced;
    return result;
  }
  const Foretelling& foretelling = state_->foretelling;
  result.imbalanced = state_->imbalanced;
  if (result.imbalanced < fewest_imbalanced || foretelling.calls() == 0) return result;
  const double most = foretelling.success(most_often);
  const double before = foretelling.success(as_before);
  const double turns = std::max(foretelling.success(one_step_on), foretelling.turns());
  const double best = std::max({most, before, turns});
  result.predictability = best;
  if (best < foretold) {
    result.pattern = PatternClass::random;
  } else if (most >= std::max(foretold, best - as_good)) {
    result.pattern = PatternClass::persistent;
    result.stragglers = state_->persistent_stragglers();
  } else {
    // Where nobody moves the two agree.
    result.pattern = turns > before ? PatternClass::rotating : PatternClass::drifting;
  }
  return result;
}

std::vector<std::int32_t> SitePattern::straggling_ranks() const {
  std::vector<std::int32_t> ranks;
  for (const Straggler& one : stragglers)
    if (std::find(ranks.begin(), ranks.end(), one.rank) == ranks.end()) ranks.push_back(one.rank);
  return ranks;
}

std::int32_t SitePattern::straggler() const {
  const std::vector<std::int32_t> ranks = straggling_ranks();
  return ranks.size() == 1 ? ranks.front() : -1;
}

SitePattern pattern_of(const std::vector<CallOfSite>& calls) {
  SiteMeans means;
  for (const CallOfSite& call : calls) means.add(call);
  PatternFinder finder(means);
  for (const CallOfSite& call : calls) finder.add(call);
  return finder.take();
}

}  // namespace papaya::report
