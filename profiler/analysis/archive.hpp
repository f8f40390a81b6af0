// Values as bytes, for another process of the same job, which has the same library: as they are in memory. What a type
// consists of is said once, for both directions, by its pack(Archive&), a member or a function beside it.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "profiler/read/frames.hpp"
#include "profiler/read/read.hpp"

namespace papaya::report {

class Archive {
 public:
  // One that is filled.
  Archive() : is_filled_(true) {}
  // One that is read, from bytes that stay where they are.
  explicit Archive(std::span<const std::byte> bytes) : left_(bytes) {}

  bool is_filled() const { return is_filled_; }
  std::vector<std::byte> take() { return std::move(bytes_); }

  // Puts the values in, or gives them what was put in. Throws std::runtime_error if there is not as much.
  template <class... Values>
  void operator()(Values&... values) {
    (field(values), ...);
  }

 private:
  template <class Value>
  void field(Value& value) {
    if constexpr (requires { value.pack(*this); })
      value.pack(*this);
    else if constexpr (requires { pack(*this, value); })
      pack(*this, value);
    else if constexpr (std::is_trivially_copyable_v<Value>)
      copy(&value, sizeof value);
    else
      parts(value);
  }

  void parts(std::string& text) {
    text.resize(size(text.size(), 1));
    copy(text.data(), text.size());
  }
  template <class Value>
  void parts(std::vector<Value>& values) {
    constexpr bool is_plain = std::is_trivially_copyable_v<Value> && !requires(Value & one) {
      one.pack(*this);
    };
    values.resize(size(values.size(), is_plain ? sizeof(Value) : 1));
    if constexpr (is_plain)
      copy(values.data(), values.size() * sizeof(Value));
    else
      for (Value& value : values) field(value);
  }
  template <class Value, std::size_t count>
  void parts(std::array<Value, count>& values) {
    for (Value& value : values) field(value);
  }
  template <class Key, class Value>
  void parts(std::map<Key, Value>& values) {
    const std::size_t count = size(values.size(), 1);
    if (is_filled_) {
      for (auto& [key, value] : values) {
        Key copied = key;
        field(copied);
        field(value);
      }
      return;
    }
    values.clear();
    for (std::size_t i = 0; i < count; ++i) {
      Key key{};
      field(key);
      field(values[std::move(key)]);
    }
  }
  template <class First, class Second>
  void parts(std::pair<First, Second>& values) {
    (*this)(values.first, values.second);
  }
  template <class... Values>
  void parts(std::tuple<Values...>& values) {
    std::apply(*this, values);
  }
  template <class Value>
  void parts(std::optional<Value>& value) {
    bool is_there = value.has_value();
    field(is_there);
    if (is_there && !value) value.emplace();
    if (!is_there) value.reset();
    if (value) field(*value);
  }

  // Of so many parts, each of this many bytes or more.
  std::size_t size(std::size_t count, std::size_t least_bytes) {
    copy(&count, sizeof count);
    if (!is_filled_ && count > left_.size() / least_bytes) throw std::runtime_error("a part of the sums is missing");
    return count;
  }
  void copy(void* value, std::size_t bytes) {
    if (bytes == 0) return;
    if (is_filled_) {
      const auto* const begin = static_cast<const std::byte*>(value);
      bytes_.insert(bytes_.end(), begin, begin + bytes);
      return;
    }
    if (bytes > left_.size()) throw std::runtime_error("a part of the sums is missing");
    std::memcpy(value, left_.data(), bytes);
    left_ = left_.subspan(bytes);
  }

  bool is_filled_ = false;
  std::vector<std::byte> bytes_;
  std::span<const std::byte> left_;
};

inline void pack(Archive& archive, Frame& frame) {
  archive(frame.module, frame.offset, frame.build_id, frame.python);
}
inline void pack(Archive& archive, NamedFrame& frame) {
  archive(static_cast<Frame&>(frame), frame.function, frame.file, frame.line);
}

}  // namespace papaya::report
