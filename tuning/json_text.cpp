#include "tuning/json_text.hpp"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

namespace papaya::tuning::json {

namespace {

constexpr std::size_t longest_front = 40;
constexpr std::size_t longest_problem = 200;

// Characters, and how many of them have been read.
class Cursor {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  Cursor(std::string_view text, std::size_t& read, std::size_t at) : text_(text), read_(&read), at_(at) {}
  reference operator*() const { return text_[at_]; }
  Cursor& operator++() {
    *read_ = ++at_;
    return *this;
  }
  Cursor operator++(int) {
    const Cursor before = *this;
    ++*this;
    return before;
  }
  bool operator==(const Cursor& other) const { return at_ == other.at_; }
  bool operator!=(const Cursor& other) const { return at_ != other.at_; }

 private:
  std::string_view text_;
  std::size_t* read_;
  std::size_t at_;
};

// Takes what the parser finds. When it is told of a value the parser has read to its end, and of a number one character
// more, which is a blank, a comma or a bracket. So a value begins at the first character after the last event that is
// neither blank nor comma nor colon.
class Builder {
 public:
  using number_integer_t = nlohmann::json::number_integer_t;
  using number_unsigned_t = nlohmann::json::number_unsigned_t;
  using number_float_t = nlohmann::json::number_float_t;
  using string_t = nlohmann::json::string_t;
  using binary_t = nlohmann::json::binary_t;

  Builder(std::string_view text, Value& root, std::string& problem, std::size_t& at)
      : text_(text), root_(root), problem_(problem), at_(at) {}

  std::size_t read = 0;  // Cursor counts here

  bool null() { return add(Value::Kind::null) != nullptr; }
  bool boolean(bool truth) {
    Value* const value = add(Value::Kind::boolean);
    if (value != nullptr) value->truth = truth;
    return value != nullptr;
  }
  bool number_integer(number_integer_t number) { return number_float(static_cast<double>(number), ""); }
  bool number_unsigned(number_unsigned_t number) {
    Value* const value = add(Value::Kind::whole);
    if (value == nullptr) return false;
    value->whole = number;
    value->number = static_cast<double>(number);
    return true;
  }
  bool number_float(number_float_t number, const string_t&) {
    Value* const value = add(Value::Kind::number);
    if (value != nullptr) value->number = number;
    return value != nullptr;
  }
  bool string(string_t& text) {
    Value* const value = add(Value::Kind::string);
    if (value != nullptr) value->text = std::move(text);
    return value != nullptr;
  }
  bool binary(binary_t&) { return false; }  // not in text
  bool start_object(std::size_t) { return open(Value::Kind::object); }
  bool start_array(std::size_t) { return open(Value::Kind::array); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(string_t& name) {
    open_.back()->members.push_back({std::move(name), begin_of_value(), {}});
    after_ = read;
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception& error) {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error while ..."
    std::string_view what = error.what();
    for (const std::string_view front : {"] ", "parse error at line ", ": "})
      if (const std::size_t begin = what.find(front); begin != what.npos && begin < longest_front)
        what.remove_prefix(begin + front.size());
    problem_ = what.substr(0, longest_problem);
    at_ = std::min(position == 0 ? 0 : position - 1, text_.size());
    return false;
  }

 private:
  std::size_t begin_of_value() const { return std::min(text_.find_first_not_of(" \t\r\n,:", after_), text_.size()); }

  bool refuse(std::size_t at, const char* problem) {
    problem_ = problem;
    at_ = at;
    return false;
  }

  // Null: there are too many.
  Value* add(Value::Kind kind) {
    const std::size_t at = begin_of_value();
    after_ = read;
    if (++count_ > most_values) {
      refuse(at, "more values than a tuning file may have");
      return nullptr;
    }
    Value* value = &root_;
    if (!open_.empty()) {
      Value& outer = *open_.back();
      value = outer.kind == Value::Kind::array ? &outer.items.emplace_back() : &outer.members.back().value;
    }
    value->kind = kind;
    value->at = at;
    return value;
  }

  // What is open is the last of its outer value, to which nothing is added meanwhile: pointers stay.
  bool open(Value::Kind kind) {
    Value* const value = add(kind);
    if (value == nullptr) return false;
    if (open_.size() == deepest) return refuse(value->at, "nested more deeply than a tuning file may be");
    open_.push_back(value);
    return true;
  }
  bool close() {
    open_.pop_back();
    after_ = read;
    return true;
  }

  std::string_view text_;
  Value& root_;
  std::string& problem_;
  std::size_t& at_;
  std::vector<Value*> open_;
  std::size_t after_ = 0;  // the last event
  std::size_t count_ = 0;
};

}  // namespace

bool parse(std::string_view text, Value& root, std::string& problem, std::size_t& at) {
  Builder builder(text, root, problem, at);
  return nlohmann::json::sax_parse(Cursor(text, builder.read, 0), Cursor(text, builder.read, text.size()), &builder);
}

Place place_of(std::string_view text, std::size_t at) noexcept {
  Place place;
  for (const char c : text.substr(0, at)) {
    if (c == '\n') {
      ++place.line;
      place.column = 1;
    } else if ((static_cast<unsigned char>(c) & 0xc0) != 0x80) {  // not within a character
      ++place.column;
    }
  }
  return place;
}

std::string shown(std::string_view text) {
  constexpr std::size_t longest = 64;
  std::string out(text.substr(0, longest));
  for (char& c : out)
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) c = '?';
  while (text.size() > longest && !out.empty() && (static_cast<unsigned char>(out.back()) & 0x80) != 0) out.pop_back();
  return out;
}

}  // namespace papaya::tuning::json
