// libzstd, opened and not linked: a program that is profiled must not get a library from papaya that it does not have.
#pragma once

#include <cstddef>

namespace papaya::zstd {

// False if it is not to be had; then the others must not be called.
bool is_there() noexcept;

struct Context;                    // ZSTD_CCtx
Context* make_context() noexcept;  // nullptr without memory
void free_context(Context* context) noexcept;

// What compressing `bytes` may take at most.
std::size_t bound(std::size_t bytes) noexcept;
// The bytes written to `to`, 0 if that failed.
std::size_t compress(Context* context, void* to, std::size_t capacity, const void* from, std::size_t bytes) noexcept;
// True if `from` holds exactly `bytes` bytes.
bool decompress(void* to, std::size_t bytes, const void* from, std::size_t from_bytes) noexcept;

}  // namespace papaya::zstd
