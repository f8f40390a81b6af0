#include "interpose/mpi_types.hpp"

#include <algorithm>
#include <cstring>

#include "interpose/inner_calls.hpp"

namespace papaya {

namespace {

MPI_Comm packing_comm = MPI_COMM_NULL;

using kernels::ElementType;

template <class T>
constexpr ElementType integer_element() {
  constexpr bool is_signed = static_cast<T>(-1) < static_cast<T>(0);
  switch (sizeof(T)) {
    case 1:
      return is_signed ? ElementType::i8 : ElementType::u8;
    case 2:
      return is_signed ? ElementType::i16 : ElementType::u16;
    case 4:
      return is_signed ? ElementType::i32 : ElementType::u32;
    default:
      return is_signed ? ElementType::i64 : ElementType::u64;
  }
}

// The handles of Open MPI are addresses, so the table is filled at run time. Ordered by how often programs
// use them.
struct Types {
  static constexpr std::size_t capacity = 64;
  TypeRow rows[capacity];
  std::size_t count = 0;

  void add(MPI_Datatype type, ElementType element, bool fortran_integer = false) noexcept {
    if (type != MPI_DATATYPE_NULL && count < capacity)
      rows[count++] = {type, element, static_cast<std::uint32_t>(kernels::size_of(element)), 0, fortran_integer};
  }
  Types() noexcept {
    add(MPI_DOUBLE, ElementType::f64);
    add(MPI_INT, integer_element<int>());
    add(MPI_FLOAT, ElementType::f32);
    add(MPI_LONG_LONG_INT, integer_element<long long>());
    add(MPI_LONG, integer_element<long>());
    add(MPI_UNSIGNED_LONG, integer_element<unsigned long>());
    add(MPI_UNSIGNED, integer_element<unsigned>());
    add(MPI_INT64_T, ElementType::i64);
    add(MPI_UINT64_T, ElementType::u64);
    add(MPI_INT32_T, ElementType::i32);
    add(MPI_UINT32_T, ElementType::u32);
    add(MPI_INT16_T, ElementType::i16);
    add(MPI_UINT16_T, ElementType::u16);
    add(MPI_INT8_T, ElementType::i8);
    add(MPI_UINT8_T, ElementType::u8);
    add(MPI_UNSIGNED_LONG_LONG, integer_element<unsigned long long>());
    add(MPI_SHORT, integer_element<short>());
    add(MPI_UNSIGNED_SHORT, integer_element<unsigned short>());
    add(MPI_SIGNED_CHAR, ElementType::i8);
    add(MPI_UNSIGNED_CHAR, ElementType::u8);
    add(MPI_BYTE, ElementType::byte);
    add(MPI_LONG_DOUBLE, ElementType::f80);
    add(MPI_C_BOOL, ElementType::boolean);
    add(MPI_C_FLOAT_COMPLEX, ElementType::c32);
    add(MPI_C_DOUBLE_COMPLEX, ElementType::c64);
    add(MPI_C_LONG_DOUBLE_COMPLEX, ElementType::c80);
    add(MPI_AINT, integer_element<MPI_Aint>());
    add(MPI_OFFSET, integer_element<MPI_Offset>());
    add(MPI_COUNT, integer_element<MPI_Count>());
    // What Fortran programs use; the kinds of the default compilers.
    add(MPI_DOUBLE_PRECISION, ElementType::f64);
    add(MPI_REAL, ElementType::f32);
    add(MPI_INTEGER, ElementType::i32, true);
    add(MPI_COMPLEX, ElementType::c32);
    add(MPI_DOUBLE_COMPLEX, ElementType::c64);
    add(MPI_LOGICAL, ElementType::logical);
    add(MPI_INTEGER1, ElementType::i8, true);
    add(MPI_INTEGER2, ElementType::i16, true);
    add(MPI_INTEGER4, ElementType::i32, true);
    add(MPI_INTEGER8, ElementType::i64, true);
    add(MPI_REAL4, ElementType::f32);
    add(MPI_REAL8, ElementType::f64);
    add(MPI_COMPLEX8, ElementType::c32);
    add(MPI_COMPLEX16, ElementType::c64);
    add(MPI_2INTEGER, ElementType::int_int);
    add(MPI_2REAL, ElementType::f32_f32);
    add(MPI_2DOUBLE_PRECISION, ElementType::f64_f64);
    add(MPI_CXX_BOOL, ElementType::boolean);
    add(MPI_CXX_FLOAT_COMPLEX, ElementType::c32);
    add(MPI_CXX_DOUBLE_COMPLEX, ElementType::c64);
    add(MPI_CXX_LONG_DOUBLE_COMPLEX, ElementType::c80);
    add(MPI_FLOAT_INT, ElementType::f32_int);
    add(MPI_DOUBLE_INT, ElementType::f64_int);
    add(MPI_LONG_INT, ElementType::long_int);
    add(MPI_2INT, ElementType::int_int);
    add(MPI_SHORT_INT, ElementType::short_int);
    add(MPI_LONG_DOUBLE_INT, ElementType::f80_int);
    // The halves that an MPI names. (No reduction of Debian's MPICH 4.0 takes its own: it aborts.)
#if defined(MPIX_C_FLOAT16)
    add(MPIX_C_FLOAT16, ElementType::f16);
#endif
#if defined(MPIX_SHORT_FLOAT)
    add(MPIX_SHORT_FLOAT, ElementType::f16);
#endif
#if defined(MPIX_BFLOAT16)
    add(MPIX_BFLOAT16, ElementType::bf16);
#endif
    // A Fortran type of another kind than its row says (compiled with -fdefault-real-8, say) is not in the
    // table.
    std::size_t kept = 0;
    for (std::size_t i = 0; i < count; ++i) {
      MPI_Aint lower = 0;
      MPI_Aint extent = 0;
      PMPI_Type_get_extent(rows[i].type, &lower, &extent);
      int size = 0;
      PMPI_Type_size(rows[i].type, &size);
      rows[i].signature = static_cast<std::uint32_t>(size);
      if (lower == 0 && extent == static_cast<MPI_Aint>(rows[i].bytes)) rows[kept++] = rows[i];
    }
    count = kept;
  }
};

const Types& types() noexcept {
  static const Types table;
  return table;
}

// MPICH's MPI_Pack and MPI_Unpack refuse MPI_BOTTOM. The same memory, named by an address that is not null
// and a type displaced back by as much.
class Bottomless {
 public:
  Bottomless(const void* buffer, std::size_t count, MPI_Datatype type) noexcept
      : buffer_(const_cast<void*>(buffer)), count_(static_cast<int>(count)), type_(type) {
    if (buffer != MPI_BOTTOM) return;
    constexpr MPI_Aint shift = 64;
    const MPI_Aint back = -shift;
    if (PMPI_Type_create_hindexed(1, &count_, &back, type, &type_) != MPI_SUCCESS) return;
    PMPI_Type_commit(&type_);
    shifted_ = true;
    buffer_ = reinterpret_cast<void*>(shift);
    count_ = 1;
  }
  ~Bottomless() {
    if (shifted_) PMPI_Type_free(&type_);
  }
  Bottomless(const Bottomless&) = delete;
  Bottomless& operator=(const Bottomless&) = delete;

  void* buffer() const noexcept { return buffer_; }
  int count() const noexcept { return count_; }
  MPI_Datatype type() const noexcept { return type_; }

 private:
  void* buffer_;
  int count_;
  MPI_Datatype type_;
  bool shifted_ = false;
};

// MPI counts the bytes of a pack in int: as many elements at a time as fit into 1 GiB.
constexpr std::size_t pack_bytes = std::size_t{1} << 30;

template <class Each>
void in_pieces(const void* buffer, std::size_t count, MPI_Datatype type, std::size_t element_bytes,
               Each&& each) noexcept {
  MPI_Aint lower = 0;
  MPI_Aint extent = 0;
  PMPI_Type_get_extent(type, &lower, &extent);
  const std::size_t piece = element_bytes == 0 ? count : std::max<std::size_t>(pack_bytes / element_bytes, 1);
  for (std::size_t first = 0; first < count; first += piece) {
    const std::size_t elements = std::min(piece, count - first);
    // By integers: MPI_BOTTOM is a null pointer, and a type of negative extent runs downwards.
    const auto at = reinterpret_cast<std::intptr_t>(buffer) + static_cast<std::intptr_t>(first) * extent;
    const Bottomless part(reinterpret_cast<const void*>(at), elements, type);
    each(part, first * element_bytes, static_cast<int>(elements * element_bytes));
  }
}

// Nobody has made it, so nobody frees it. Those of MPI_Type_create_f90_real and its like have no name.
bool is_predefined(int combiner) noexcept {
  return combiner == MPI_COMBINER_NAMED || combiner == MPI_COMBINER_F90_REAL || combiner == MPI_COMBINER_F90_COMPLEX ||
         combiner == MPI_COMBINER_F90_INTEGER;
}

}  // namespace

void pack_on(MPI_Comm comm) noexcept {
  packing_comm = comm;
}

const TypeRow* find_row(MPI_Datatype type) noexcept {
  const Types& table = types();
  for (std::size_t i = 0; i < table.count; ++i)
    if (table.rows[i].type == type) return &table.rows[i];
  return nullptr;
}

void pack(const void* buffer, std::size_t count, MPI_Datatype type, std::size_t element_bytes, void* packed) noexcept {
  in_pieces(buffer, count, type, element_bytes, [&](const Bottomless& part, std::size_t offset, int bytes) {
    int position = 0;
    oddities::must_succeed(PMPI_Pack(part.buffer(), part.count(), part.type(), static_cast<std::byte*>(packed) + offset,
                                     bytes, &position, packing_comm));
  });
}

void unpack(const void* packed, void* buffer, std::size_t count, MPI_Datatype type,
            std::size_t element_bytes) noexcept {
  in_pieces(buffer, count, type, element_bytes, [&](const Bottomless& part, std::size_t offset, int bytes) {
    int position = 0;
    oddities::must_succeed(PMPI_Unpack(static_cast<const std::byte*>(packed) + offset, bytes, &position, part.buffer(),
                                       part.count(), part.type(), packing_comm));
  });
}

bool is_committed(MPI_Datatype type) noexcept {
  // MPI has no question for it, but looks at it when nothing at all is packed.
  char nothing = 0;
  int position = 0;
  return is_plausible(type) &&
         PMPI_Pack(&nothing, 0, type, &nothing, sizeof nothing, &position, packing_comm) == MPI_SUCCESS;
}

bool is_dense(MPI_Datatype type) noexcept {
  MPI_Count size = 0;
  MPI_Aint lower = 0;
  MPI_Aint extent = 0;
  if (PMPI_Type_size_x(type, &size) != MPI_SUCCESS || PMPI_Type_get_extent(type, &lower, &extent) != MPI_SUCCESS ||
      lower != 0 || size != extent)
    return false;
  int integers = 0;
  int addresses = 0;
  int types = 0;
  int combiner = 0;
  if (PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner) != MPI_SUCCESS) return false;
  if (is_predefined(combiner)) return true;
  if ((combiner != MPI_COMBINER_CONTIGUOUS && combiner != MPI_COMBINER_DUP) || integers > 1 || types != 1) return false;
  int count = 0;
  MPI_Datatype inner = MPI_DATATYPE_NULL;
  if (PMPI_Type_get_contents(type, integers, 0, 1, &count, nullptr, &inner) != MPI_SUCCESS) return false;
  const bool dense = is_dense(inner);
  release_part(inner);
  return dense;
}

void release_part(MPI_Datatype& type) noexcept {
  int ignored = 0;
  int combiner = 0;
  if (PMPI_Type_get_envelope(type, &ignored, &ignored, &ignored, &combiner) == MPI_SUCCESS && !is_predefined(combiner))
    PMPI_Type_free(&type);
}

PairParts padded_pair(MPI_Datatype type, std::size_t element_bytes) noexcept {
  const TypeRow* const row = find_row(type);
  if (row == nullptr || row->signature == row->bytes || element_bytes != row->bytes) return {};
  constexpr std::size_t index_bytes = sizeof(int);
  const std::size_t value_bytes = row->signature - index_bytes;
  const std::size_t index_at = (value_bytes + alignof(int) - 1) / alignof(int) * alignof(int);
  return {row->bytes, value_bytes, index_at, index_bytes};
}

void copy_pairs(const PairParts& pair, const void* from, void* to, std::size_t count) noexcept {
  const auto* in = static_cast<const std::byte*>(from);
  auto* out = static_cast<std::byte*>(to);
  for (; count > 0; --count, in += pair.bytes, out += pair.bytes) {
    std::memcpy(out, in, pair.value_bytes);
    std::memcpy(out + pair.index_at, in + pair.index_at, pair.index_bytes);
  }
}

bool element_type_of(MPI_Datatype type, kernels::ElementType& element) noexcept {
  const TypeRow* const row = find_row(type);
  if (row == nullptr) return false;
  element = row->element;
  return true;
}

bool is_plausible(MPI_Datatype type) noexcept {
  if (type == MPI_DATATYPE_NULL) return false;
#if defined(MPICH)
  // MPICH's handles carry their kind: bits 26 to 29 say datatype, bits 30 and 31 say how it is stored, 0 for
  // invalid.
  const auto bits = static_cast<unsigned>(type);
  return ((bits >> 26) & 0xf) == 0x3 && (bits >> 30) != 0;
#else
  return true;
#endif
}

bool is_named(MPI_Datatype type) noexcept {
  if (find_row(type) != nullptr) return true;
  int ignored = 0;
  int combiner = 0;
  return is_plausible(type) && PMPI_Type_get_envelope(type, &ignored, &ignored, &ignored, &combiner) == MPI_SUCCESS &&
         combiner == MPI_COMBINER_NAMED;
}

std::int64_t type_bytes_of(MPI_Datatype type) noexcept {
  if (!is_plausible(type)) return -1;
  MPI_Count bytes = 0;
  if (PMPI_Type_size_x(type, &bytes) != MPI_SUCCESS || bytes == MPI_UNDEFINED) return -1;
  return bytes;
}

std::int64_t element_bytes_of(MPI_Datatype type) noexcept {
  if (const TypeRow* const row = find_row(type)) return row->signature;
  return type_bytes_of(type);
}

}  // namespace papaya
