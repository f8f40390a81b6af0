// Any bytes as a tuning file: taking it must not crash, throw, hang or give a choice that cannot be served, and every
// rank that takes the same text must choose alike.
//
// With libFuzzer:
//   clang++ -fsanitize=fuzzer,address,undefined ... tuning_fuzz.cpp
// With any compiler -DPAPAYA_FUZZ_STANDALONE adds a main that needs no corpus: it makes files at random, but the same
// ones each time, out of a grammar that knows the format, and damages them:
//   tuning_fuzz [ROUNDS [FILES...]]
//   tuning_fuzz --write-seeds FOLDER     files without damage, as a corpus for libFuzzer
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "tuning/selection.hpp"

namespace {

using papaya::Collective;
using papaya::Descriptor;
using papaya::Form;
using papaya::Reason;
namespace tuning = papaya::tuning;

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "tuning_fuzz: %s\n", what);
  std::abort();
}

void check(bool holds, const char* what) {
  if (!holds) fail(what);
}

constexpr std::array<std::uint64_t, 8> sizes = {0, 1, 8, 4095, 4096, 65536, 1 << 20, std::uint64_t{1} << 30};

const std::vector<tuning::Facts>& all_facts() {
  static const std::vector<tuning::Facts> facts = [] {
    std::vector<tuning::Facts> made;
    for (const int ranks : {2, 3, 8, 200})
      for (const int nodes : {1, 2})
        for (const bool is_busy : {false, true})
          for (const auto arrivals : {tuning::ArrivalClass::unknown, tuning::ArrivalClass::rotating})
            made.push_back({.ranks = ranks,
                            .nodes = nodes,
                            .oversubscribed = is_busy,
                            .may_reorder = ranks == 3,
                            .predefined = ranks != 8,
                            .ranks_per_node = (ranks + nodes - 1) / nodes,
                            .arrivals = arrivals});
    return made;
  }();
  return facts;
}

// What a choice of papaya's own must be.
void check_choice(const tuning::Choice& choice, Collective collective, std::uint64_t bytes,
                  const tuning::Facts& facts) {
  check((choice.rule == nullptr) == (choice.reason != Reason::none), "neither an algorithm nor a reason");
  if (choice.rule == nullptr) return;
  const Descriptor* const algorithm = choice.rule->algorithm;
  check(algorithm != nullptr && serves(*algorithm, collective), "an algorithm of another collective");
  check(tuning::hindrance(*algorithm, bytes, facts) == Reason::none, "an algorithm that cannot serve the call");
  check(choice.rule->values.size() == algorithm->parameters.size(), "parameters are missing");
  for (std::size_t i = 0; i < choice.rule->values.size(); ++i) {
    const papaya::Parameter& parameter = algorithm->parameters[i];
    check(choice.rule->values[i] >= parameter.lowest && choice.rule->values[i] <= parameter.highest,
          "a parameter out of its range");
  }
}

bool are_alike(const tuning::Choice& one, const tuning::Choice& other) {
  const auto text_of = [](const tuning::Choice& choice) {
    return choice.rule == nullptr ? std::string() : tuning::text_of_algorithm(*choice.rule);
  };
  return text_of(one) == text_of(other) && one.reason == other.reason && one.forced == other.forced;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::array<std::vector<std::string>, 2> warnings;
  std::array<papaya::Settings, 2> settings;
  const tuning::Selection first(settings[0], text, warnings[0]);
  const tuning::Selection second(settings[1], text, warnings[1]);
  check(warnings[0] == warnings[1], "two ranks are told different things");
  if (tuning::is_json(text)) {
    check(warnings[0].size() <= tuning::Problems::most + 2, "too many warnings");
    for (const std::string& warning : warnings[0])
      for (const char c : warning) check(static_cast<unsigned char>(c) >= ' ', "a warning is not a line");
  }
  for (std::size_t i = 0; i < papaya::collective_count; ++i) {
    const auto collective = static_cast<Collective>(i);
    for (const tuning::Facts& facts : all_facts()) {
      for (const std::uint64_t bytes : sizes) {
        std::vector<tuning::Considered> considered;
        const tuning::Choice choice = first.choose(collective, bytes, facts, Form::blocking, &considered);
        check_choice(choice, collective, bytes, facts);
        check(are_alike(choice, second.choose(collective, bytes, facts)), "two ranks choose differently");
      }
      if (collective != Collective::alltoall) continue;
      const tuning::Choice any = first.choose_for_any_size(collective, Collective::alltoallv, facts);
      check(are_alike(any, second.choose_for_any_size(collective, Collective::alltoallv, facts)),
            "two ranks choose differently for any size");
      if (any.rule == nullptr) continue;
      for (const std::uint64_t bytes : sizes) {
        const tuning::Choice choice = first.choose(collective, bytes, facts);
        check(bytes == 0 || (choice.rule != nullptr && choice.rule->algorithm == any.rule->algorithm),
              "not the same algorithm for any size");
      }
    }
  }
  return 0;
}

#ifdef PAPAYA_FUZZ_STANDALONE

#include <fstream>
#include <iterator>
#include <random>

namespace {

constexpr long default_rounds = 600;  // some seconds under sanitizers
constexpr int seed_count = 40;

// Files of a grammar that knows the format: most rules can be used, and some values cannot.
class Maker {
 public:
  explicit Maker(std::uint64_t seed) : random_(seed) {}

  std::uint64_t below(std::uint64_t end) { return random_() % end; }
  bool one_in(std::uint64_t n) { return below(n) == 0; }

  std::string file() {
    if (one_in(8)) return text_file();
    std::string text = R"({"version": )" + std::string(one_in(30) ? "2" : "1");
    if (one_in(5)) text += R"(, "measured_on": {"mpi": "x", "cores": 2})";
    text += ", \"rules\": [";
    const std::uint64_t rules = below(12);
    for (std::uint64_t i = 0; i < rules; ++i) text += (i == 0 ? "\n" : ",\n") + rule();
    return text + "]}";
  }

  void damage(std::string& text) {
    for (std::uint64_t changes = below(4); changes > 0 && !text.empty(); --changes) {
      const std::size_t at = below(text.size());
      switch (below(6)) {
        case 0:
          text[at] = static_cast<char>(below(256));
          break;
        case 1:
          text.erase(at, 1 + below(8));
          break;
        case 2:
          text.insert(at, text.substr(below(text.size()), below(40)));
          break;
        case 3:
          text.resize(at);
          break;
        case 4:
          text.insert(at, 1, "{}[],:\"\\0-9e.tfn"[below(16)]);
          break;
        default:
          text.insert(at, std::string(below(20), '['));
      }
    }
  }

 private:
  std::string_view pick(const std::vector<std::string_view>& words) { return words[below(words.size())]; }

  std::string name_of_collective() {
    return std::string(pick({"allreduce", "reduce", "bcast", "alltoall", "barrier", "allgather", "MPI_Allreduce",
                             "alltoallv", "scan", "alreduce", ""}));
  }
  std::string number() {
    if (one_in(12))
      return std::string(pick({"0", "1e30", "-1", "4294967296", "0.125", "18446744073709551615", "null", "\"1\""}));
    return std::string(pick({"1", "2", "3", "4", "7", "8", "64", "4096", "65536", "2147483647"}));
  }
  std::string size() {
    if (one_in(2)) return number();
    if (one_in(12)) return "\"" + std::string(pick({"4Q", "", "9999999999T", "-1"})) + "\"";
    return "\"" + std::string(pick({"64K", "1M", "4K", "0", "8G"})) + "\"";
  }
  std::string range(bool of_sizes) {
    const auto one = [&] { return of_sizes ? size() : number(); };
    if (one_in(3)) return one();
    return "[" + one() + ", " + one() + (one_in(20) ? ", 1]" : "]");
  }
  std::string parameters(std::string_view algorithm) {
    std::string text = "{";
    for (const Descriptor* descriptor : papaya::registry())
      if (descriptor->name == algorithm)
        for (const papaya::Parameter& parameter : descriptor->parameters)
          text += (text.size() > 1 ? ", \"" : "\"") + std::string(parameter.name) + "\": " + size();
    return text + (one_in(15) ? ", \"x\": 1}" : "}");
  }
  std::string rule() {
    const std::span<const Descriptor* const> all = papaya::registry();
    const Descriptor& descriptor = *all[below(all.size())];
    const std::string algorithm(one_in(6) ? "native" : descriptor.name);
    std::string collective = one_in(5) ? name_of_collective() : tuning::lower(name_of(descriptor.collective));
    std::string text = R"({"collective": ")" + collective + R"(", "algorithm": ")" + algorithm + "\"";
    const auto add = [&](const char* name, const std::string& value) {
      text += ", \"" + std::string(name) + "\": " + value;
    };
    if (one_in(3)) add("parameters", parameters(algorithm));
    for (const char* name : {"ranks", "nodes", "ranks_per_node"})
      if (one_in(3)) add(name, range(false));
    if (one_in(2)) add("bytes", range(true));
    if (one_in(4)) add("oversubscribed", std::string(pick({"true", "false", "1"})));
    if (one_in(4)) add("arrivals", "\"" + std::string(pick({"any", "rotating", "random", "late"})) + "\"");
    if (one_in(6)) add("measured", R"([{"bytes": )" + size() + R"(, "ratio_interval": [)" + number() + ", 1]}]");
    return text + "}";
  }
  std::string text_file() {
    std::string text;
    for (std::uint64_t lines = below(6); lines > 0; --lines)
      text += name_of_collective() + " " +
              std::string(pick({"native", "auto", "0-4K:native,4K-:ring", "ring:chunk_bytes=4K", "arrival_leader",
                                "tree_bcast:radix=3", "4K-0:native", "0-8:arrival_tree,8-:native", ":", "#"})) +
              "\n";
    return text;
  }

  std::mt19937_64 random_;
};

void run(const std::string& text) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
}

// Whether most of what is made gets past the parser, or the changes would never reach what is behind it.
bool is_taken(const std::string& text) {
  std::vector<std::string> warnings;
  const tuning::TuningFile file = tuning::read_tuning_file(text, warnings);
  for (const std::vector<tuning::FileRule>& rules : file.rows)
    if (!rules.empty()) return true;
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> seeds;
  int taken = 0;
  for (int i = 0; i < seed_count; ++i) {
    seeds.push_back(Maker(static_cast<std::uint64_t>(i)).file());
    taken += is_taken(seeds.back()) ? 1 : 0;
  }
  if (4 * taken < seed_count) fail("fewer than a quarter of the seeds have a rule that can be used");
  if (argc == 3 && std::string_view(argv[1]) == "--write-seeds") {
    for (int i = 0; i < seed_count; ++i)
      std::ofstream(std::string(argv[2]) + "/tuning-" + std::to_string(i), std::ios::binary)
          << seeds[static_cast<std::size_t>(i)];
    return 0;
  }
  for (int i = 2; i < argc; ++i) {
    std::ifstream file(argv[i], std::ios::binary);
    seeds.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  for (const std::string& seed : seeds) run(seed);
  const long rounds = argc > 1 ? std::strtol(argv[1], nullptr, 10) : default_rounds;
  long usable = 0;
  for (long round = 0; round < rounds; ++round) {
    Maker maker(static_cast<std::uint64_t>(seed_count + round));
    std::string text = maker.file();
    maker.damage(text);
    usable += is_taken(text) ? 1 : 0;
    run(text);
  }
  std::printf("%ld files, %ld of them with rules that are in force, no crash\n",
              rounds + static_cast<long>(seeds.size()), usable);
  return 0;
}

#endif
