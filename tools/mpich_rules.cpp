#include "tools/mpich_rules.hpp"

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

#include "tuning/native_algorithms.hpp"
#include "tuning/selection_text.hpp"

namespace papaya {

namespace {

using Json = nlohmann::ordered_json;  // the first of the branches that holds is taken

// Of the others it knows the size of a block or message.
constexpr Collective counts_all_blocks[] = {Collective::allgather};

std::string in_names(Collective collective) {
  return std::string(name_of(collective));  // MPIR_Allreduce_...
}

std::string algorithm_key(Collective collective, std::string_view algorithm) {
  return fmt::format("algorithm=MPIR_{}_{}_{}", in_names(collective), algorithm == "nb" ? "allcomm" : "intra",
                     algorithm);
}

// How ch4 hands a call on as it is, to the network's part, which leaves it to MPICH's algorithms. It does so with all
// calls of the other collectives.
std::string composition_key(Collective collective) {
  switch (collective) {
    case Collective::allreduce:
    case Collective::barrier:
      return fmt::format("composition=MPIDI_{}_intra_composition_beta", in_names(collective));
    case Collective::bcast:
    case Collective::reduce:
      return fmt::format("composition=MPIDI_{}_intra_composition_gamma", in_names(collective));
    default:
      return "";
  }
}

// MPICH does not check whether an algorithm that its tree names can serve the call.
Json guarded(Collective collective, std::string_view algorithm, Json leaf, const Json& usual) {
  const tuning::MpichNeeds needs = tuning::mpich_needs(collective, algorithm);
  if (needs.many_elements)
    leaf = {{"is_op_built_in=yes", {{"count<pow2", usual}, {"count=any", std::move(leaf)}}},
            {"is_op_built_in=no", usual}};
  if (needs.commutative) leaf = {{"is_commutative=yes", std::move(leaf)}, {"is_commutative=no", usual}};
  if (needs.several_nodes) leaf = {{"comm_hierarchy=parent", std::move(leaf)}, {"comm_hierarchy=any", usual}};
  if (needs.power_of_two) leaf = {{"comm_size=pow2", std::move(leaf)}, {"comm_size=any", usual}};
  return leaf;
}

class Writer {
 public:
  Writer(MpichTree which, std::string_view library) : which_(which), library_(library) {}

  // False with a sentence in `problem`.
  bool write(const std::vector<OfCollective>& all, Json& tree, std::string& problem) const;

 private:
  std::string key_of(Collective collective, const NativeChoice& choice) const {
    return which_ == MpichTree::algorithms ? algorithm_key(collective, choice.algorithm) : composition_key(collective);
  }
  Json sizes_of(Collective collective, const std::vector<FromBytes>& sizes, const Json& usual) const;

  MpichTree which_;
  std::string_view library_;
};

Json Writer::sizes_of(Collective collective, const std::vector<FromBytes>& sizes, const Json& usual) const {
  const auto branch = [&](const NativeChoice& choice) {
    if (choice.algorithm.empty()) return usual;
    return guarded(collective, choice.algorithm, {{key_of(collective, choice), Json::object()}}, usual);
  };
  // MPICH asks a barrier for no size, and reads sizes as int.
  if (collective == Collective::barrier) return branch(sizes.front().choice);
  constexpr std::uint64_t largest = std::numeric_limits<int>::max();
  const std::string_view size = collective == Collective::allgather ? "total_msg_size" : "avg_msg_size";
  Json branches = Json::object();
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const bool is_last = i + 1 == sizes.size() || sizes[i + 1].bytes > largest;
    branches[is_last ? fmt::format("{}=any", size) : fmt::format("{}<={}", size, sizes[i + 1].bytes - 1)] =
        branch(sizes[i].choice);
    if (is_last) break;
  }
  return branches.size() == 1 ? branch(sizes.front().choice) : branches;
}

bool Writer::write(const std::vector<OfCollective>& all, Json& tree, std::string& problem) const {
  for (const auto& [collective, ranks] : all) {
    if (which_ == MpichTree::device && composition_key(collective).empty()) continue;
    for (const FromRanks& one : ranks)
      for (const FromBytes& size : one.sizes) {
        const std::string key = key_of(collective, size.choice);
        if (!size.choice.algorithm.empty() && library_.find(key) == library_.npos) {
          problem = fmt::format("this MPICH knows no {}.", key);
          return false;
        }
      }
    std::vector<std::string> path = {fmt::format("collective={}", tuning::lower(name_of(collective))),
                                     "comm_type=intra"};
    // The size of what is sent is not known there.
    if (collective == Collective::alltoall) path.emplace_back("is_sendbuf_inplace=no");
    Json* place = &tree;
    for (const std::string& step : path) {
      if (!place->is_object() || !place->contains(step)) {
        problem = fmt::format("MPICH's own tree has no {} for {}.", step, path.front());
        return false;
      }
      place = &(*place)[step];
    }
    const Json usual = *place;
    Json branches = Json::object();
    for (std::size_t i = 0; i < ranks.size(); ++i)
      branches[i + 1 == ranks.size() ? std::string("comm_size=any")
                                     : fmt::format("comm_size<={}", ranks[i + 1].ranks - 1)] =
          sizes_of(collective, ranks[i].sizes, usual);
    *place = std::move(branches);
  }
  return true;
}

}  // namespace

std::string_view tree_inside(std::string_view library, MpichTree which) {
  constexpr std::string_view begin = R"({"collective=)";
  const std::string_view leaf = which == MpichTree::algorithms ? R"({"algorithm=MPIR_)" : R"({"composition=MPIDI_)";
  for (std::size_t at = library.find(begin); at != library.npos; at = library.find(begin, at + 1)) {
    const std::string_view text = library.substr(at, library.find('\0', at) - at);
    if (text.find(leaf) != text.npos) return text;
  }
  return {};
}

std::string mpich_rules(const tuning::TuningFile& file, const ExportFacts& facts, MpichTree which,
                        std::string_view library, std::string& problem) {
  const std::vector<OfCollective> all = rules_for(file, facts, tuning::mpich_library, counts_all_blocks);
  if (all.empty()) return "";
  const std::string_view own = tree_inside(library, which);
  Json tree = Json::parse(own, nullptr, false);
  if (own.empty() || !tree.is_object()) {
    problem = which == MpichTree::algorithms ? "there is no tree of MPICH 4 in its library."
                                             : "there is no tree of MPICH's device ch4 in its library.";
    return "";
  }
  if (!Writer(which, library).write(all, tree, problem)) return "";
  std::string text = tree.dump(1) + "\n";
  // MPICH maps the file and reads on to the zero behind it, which a file of whole pages does not have.
  constexpr std::size_t page = 4096;
  if (text.size() % page == 0) text += "\n";
  return text;
}

}  // namespace papaya
