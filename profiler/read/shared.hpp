// Tables that are equal on most ranks, each kept once.
#pragma once

#include <memory>
#include <set>
#include <utility>

namespace papaya::report {

template <class Table>
class Shared {
 public:
  // The one that equals `table`.
  std::shared_ptr<const Table> of(Table table) {
    if (last_ == nullptr || !(*last_ == table))
      last_ = *known_.insert(std::make_shared<const Table>(std::move(table))).first;
    return last_;
  }

 private:
  struct IsLess {
    bool operator()(const std::shared_ptr<const Table>& a, const std::shared_ptr<const Table>& b) const {
      return *a < *b;
    }
  };

  std::set<std::shared_ptr<const Table>, IsLess> known_;
  std::shared_ptr<const Table> last_;
};

}  // namespace papaya::report
