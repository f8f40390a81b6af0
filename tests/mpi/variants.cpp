// usage: variants COLLECTIVE few|all|NUMBER|across|across-few
// What a test has to run, a line each: SELECTION ORDER. `few`: auto and every algorithm of the registry as it
// is by default; `all`: also with every parameter moved off its default, and reductions in the order of
// arrival; a number: one of the few, each in its turn; `across`: those that work across nodes, with every
// parameter moved as well; `across-few`: as they are by default.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "algorithms/algorithm.hpp"
#include "tuning/selection.hpp"

int main(int argc, char** argv) {
  using namespace papaya;
  Collective collective{};
  if (argc != 3 || !tuning::collective_of(argv[1], collective)) return 2;
  const bool across = std::strncmp(argv[2], "across", 6) == 0;
  const bool all = std::strcmp(argv[2], "across") == 0 || std::strcmp(argv[2], "all") == 0;
  const bool reduces = collective == Collective::allreduce || collective == Collective::reduce ||
                       collective == Collective::reduce_scatter || collective == Collective::reduce_scatter_block;
  const auto is_one = [&](const Descriptor* descriptor) { return serves(*descriptor, collective); };
  const auto count = static_cast<int>(std::count_if(registry().begin(), registry().end(), is_one));
  const int wanted = std::atoi(argv[2]);  // 0: no number
  int position = 0;
  if (!across && (wanted == 0 || wanted % (count + 1) == position++)) std::printf("auto rank\n");
  for (const Descriptor* descriptor : registry()) {
    if (!is_one(descriptor) || (across && descriptor->one_node)) continue;
    if (wanted > 0 && position++ != wanted % (count + 1)) continue;
    std::vector<std::string> selections = {std::string(descriptor->name)};
    if (all)
      for (const Parameter& parameter : descriptor->parameters) {
        const std::int64_t other = parameter.fallback == parameter.lowest ? parameter.lowest + 1 : parameter.lowest;
        selections.push_back(selections[0] + ":" + std::string(parameter.name) + "=" + std::to_string(other));
      }
    for (const std::string& selection : selections) {
      if (!descriptor->needs_arrival_order) std::printf("%s rank\n", selection.c_str());
      if (descriptor->needs_arrival_order || (all && reduces)) std::printf("%s arrival\n", selection.c_str());
    }
  }
}
