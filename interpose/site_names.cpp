#include "interpose/site_names.hpp"

#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

#include "interpose/function_names.hpp"

namespace papaya {

namespace {

std::string_view file_name(std::string_view path) noexcept {
  return path.substr(path.find_last_of('/') + 1);
}

}  // namespace

std::uint64_t SiteNames::at(std::uint64_t number, const trace::Header& record) {
  if (number == 0) return 0;
  const std::lock_guard lock(mutex_);
  const auto [entry, is_new] = known_.try_emplace(number, 0);
  if (!is_new) return entry->second;
  const auto* const base = reinterpret_cast<const std::byte*>(&record);
  const auto& site = reinterpret_cast<const trace::CallSite*>(base + trace::call_sites_offset)[number - 1];
  const auto& frame = reinterpret_cast<const trace::Frame*>(base + trace::frames_offset)[site.first_frame];
  if (frame.module == 0) return 0;
  const auto& module = reinterpret_cast<const trace::Module*>(base + trace::modules_offset)[frame.module - 1];
  FunctionName names;
  tuning::NamedSite named;
  if (module.language != 0) {
    names.function = module.path + std::strlen(module.path) + 1;
    named.file = file_name(module.path);
    named.line = static_cast<int>(frame.offset);
  } else {
    names = FunctionNames().at(module.path, frame.offset);
    named.module = file_name(module.path);
    named.offset = frame.offset;
    named.file = file_name(names.file);
    named.line = names.line;
  }
  named.function = names.function;
  entry->second = places_(named);
  return entry->second;
}

}  // namespace papaya
