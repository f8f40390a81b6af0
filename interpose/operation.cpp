#include "interpose/operation.hpp"

#include "interpose/device_memory.hpp"

namespace papaya::nonblocking {

void Operation::stage(bool is_root, std::size_t bytes, const CallFacts& facts) noexcept {
  using Use = Staging::Use;
  const Arguments& a = arguments;
  operands.count = static_cast<std::size_t>(a.count);
  operands.bytes = bytes;
  operands.root = a.root;
  operands.reduction = &reduction;
  if (a.collective == Collective::barrier) return;
  const std::size_t element = bytes / operands.count;
  MPI_Datatype kept = a.type;
  if (!is_named(a.type) && !is_dense(a.type)) {
    PMPI_Type_contiguous(1, a.type, &type);
    PMPI_Type_commit(&type);
    kept = type;
  }
  const auto is_device = [&](const void* buffer) { return device_memory::holds(buffer, facts.arrival_ticks); };
  const auto staged = [&](const void* buffer, Use use) {
    Staging one(buffer, operands.count, kept, element, use, is_device(buffer));
    if (one.lacks() != 0) end_for_lack_of_memory(one.lacks());
    return one;
  };
  if (a.collective == Collective::bcast) {
    receive = staged(a.receive, is_root ? Use::read : Use::write);
    if (is_root)
      operands.send = receive.bytes();
    else
      operands.receive = receive.bytes();
    return;
  }
  const bool in_place = a.send == MPI_IN_PLACE;
  receive = staged(a.receive, in_place ? Use::both : Use::write);
  if (!in_place) send = staged(a.send, Use::read);
  operands.receive = receive.bytes();
  operands.send = in_place ? receive.bytes() : send.bytes();
}

// A reduction runs on the program's own buffers, whose type and operation are predefined; a bcast as bytes.
int Operation::start_natively(MPI_Comm copy, MPI_Request* inner) noexcept {
  const Arguments& a = arguments;
  switch (a.collective) {
    case Collective::barrier:
      return PMPI_Ibarrier(copy, inner);
    case Collective::bcast:
      return PMPI_Ibcast(receive.bytes(), static_cast<int>(operands.bytes), MPI_BYTE, a.root, copy, inner);
    default:
      return PMPI_Iallreduce(a.send, a.receive, static_cast<int>(a.count), a.type, a.op, copy, inner);
  }
}

}  // namespace papaya::nonblocking
