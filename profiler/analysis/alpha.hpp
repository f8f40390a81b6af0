// Alpha, the time to send one message, from the tables that ranks measured.
#pragma once

#include <cstdint>
#include <vector>

#include "base/message_times.hpp"
#include "profiler/read/read.hpp"

namespace papaya::report {

// Measured, one way. 0: not measured.
struct MessageTime {
  std::uint64_t bytes = 0;
  double node_ns = 0;     // within a node
  double cluster_ns = 0;  // between two nodes
};

class Archive;

// Not every rank measures: within nodes and between them the first that did counts.
class Alpha {
 public:
  explicit Alpha(const std::vector<RankFile>& files);

  double ns(std::uint64_t bytes, bool across_nodes);
  bool used_nominal() const { return used_nominal_; }
  void merge(const Alpha& other) { used_nominal_ = used_nominal_ || other.used_nominal_; }
  void pack(Archive& archive);
  bool measured(bool across_nodes) const { return !(across_nodes ? cluster_ : node_).empty(); }
  // Ascending sizes.
  std::vector<MessageTime> message_times() const;

 private:
  struct Last {
    bool valid = false;
    std::uint64_t bytes = 0;
    double ns = 0;
  };

  static MessageTimes times_of(const RankHeader& header, std::uint64_t trace::Alpha::*ns);
  double compute(std::uint64_t bytes, bool across_nodes);

  MessageTimes node_;
  MessageTimes cluster_;
  Last last_[2];
  bool used_nominal_ = false;
};

}  // namespace papaya::report
