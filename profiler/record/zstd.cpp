#include "profiler/record/zstd.hpp"

#include "base/optional_library.hpp"

namespace papaya::zstd {

namespace {

// Level 1 compresses columns of events nearly as well as any, and is the quickest that is no special case.
constexpr int level = 1;

struct Library {
  Context* (*create)() = nullptr;
  std::size_t (*free)(Context*) = nullptr;
  std::size_t (*bound)(std::size_t) = nullptr;
  std::size_t (*compress)(Context*, void*, std::size_t, const void*, std::size_t, int) = nullptr;
  std::size_t (*decompress)(void*, std::size_t, const void*, std::size_t) = nullptr;
  unsigned (*is_error)(std::size_t) = nullptr;
  bool is_whole = false;

  Library() noexcept {
    OptionalLibrary library("libzstd.so.1");
    library.find(create, "ZSTD_createCCtx");
    library.find(free, "ZSTD_freeCCtx");
    library.find(bound, "ZSTD_compressBound");
    library.find(compress, "ZSTD_compressCCtx");
    library.find(decompress, "ZSTD_decompress");
    library.find(is_error, "ZSTD_isError");
    is_whole = library.is_whole();
  }
};

const Library& library() noexcept {
  static const Library loaded;
  return loaded;
}

}  // namespace

bool is_there() noexcept {
  return library().is_whole;
}
Context* make_context() noexcept {
  return library().create();
}
void free_context(Context* context) noexcept {
  library().free(context);
}
std::size_t bound(std::size_t bytes) noexcept {
  return library().bound(bytes);
}

std::size_t compress(Context* context, void* to, std::size_t capacity, const void* from, std::size_t bytes) noexcept {
  const std::size_t written = library().compress(context, to, capacity, from, bytes, level);
  return library().is_error(written) != 0 ? 0 : written;
}

bool decompress(void* to, std::size_t bytes, const void* from, std::size_t from_bytes) noexcept {
  return library().decompress(to, bytes, from, from_bytes) == bytes;
}

}  // namespace papaya::zstd
