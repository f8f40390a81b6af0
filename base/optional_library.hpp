// A library that papaya uses where it is installed. Not linked: few programs need it.
#pragma once

#include <dlfcn.h>

namespace papaya {

// Stays loaded: its functions may be in use at any time.
class OptionalLibrary {
 public:
  explicit OptionalLibrary(const char* name) noexcept
      : handle_(dlopen(name, RTLD_LAZY | RTLD_LOCAL)), is_whole_(handle_ != nullptr) {}

  template <class Function>
  void find(Function*& function, const char* name) noexcept {
    if (handle_ != nullptr) function = reinterpret_cast<Function*>(dlsym(handle_, name));
    is_whole_ = is_whole_ && function != nullptr;
  }

  // It is there, with each function looked for.
  bool is_whole() const noexcept { return is_whole_; }

 private:
  void* handle_;
  bool is_whole_;
};

}  // namespace papaya
