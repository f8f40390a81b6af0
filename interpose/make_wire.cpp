#include "interpose/make_wire.hpp"

#include <algorithm>
#include <chrono>
#include <new>

namespace papaya {

namespace {

// Until this rank reaches the others, or cannot.
Steps connect(Transport& transport, const std::vector<int>& members, Link& link) {
  link = transport.begin_connecting(members);
  const auto latest = std::chrono::steady_clock::now() + Transport::longest_connecting;
  co_await until([&] {
    if (link != Link::under_way) return true;
    const bool works = transport.progress_connections();
    link = !works || std::chrono::steady_clock::now() > latest ? Link::refused : transport.link(members);
    return link != Link::under_way;
  });
}

}  // namespace

Steps make_wire(WireRequest request, Agreement& agreement, std::vector<std::int64_t>& offsets, MadeWire& made) {
  Transport& transport = request.transport;
  if (transport.connects()) {
    Link link{};
    Steps connecting = connect(transport, request.members, link);
    co_await until([&] { return connecting.advance(); });
    const int is_reached = link == Link::up ? 1 : 0;
    int are_reached = 0;
    co_await agreement.least_while_connecting(is_reached, are_reached);
    if (!are_reached) {
      made.failure = Reason::no_transport;
      co_return;
    }
  }
  try {
    made.wire = transport.offer(request.members, request.policy, request.shape);
  } catch (const std::bad_alloc&) {
  }
  const std::int64_t mine = made.wire != nullptr ? made.wire->offset() : -1;
  // Also the barrier after which all shares are zero.
  co_await agreement.gather(mine, offsets.data());
  if (std::none_of(offsets.begin(), offsets.end(), [](std::int64_t one) { return one < 0; })) {
    made.wire->connect(offsets);
    co_return;
  }
  made.wire.reset();
  made.failure = Reason::no_shared_memory;
}

}  // namespace papaya
