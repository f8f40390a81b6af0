#include "tools/symbols.hpp"

#if PAPAYA_HAS_LIBDW
#include <elfutils/libdwfl.h>
#include <fmt/format.h>

#include "base/function_name.hpp"
#endif

namespace papaya {

#if PAPAYA_HAS_LIBDW

namespace {

std::string hexadecimal(const unsigned char* bytes, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += fmt::format("{:02x}", bytes[i]);
  return text;
}

}  // namespace

// One program or library.
class Symbols::File {
 public:
  File(const std::string& path, const std::string& build_id) : session_(dwfl_begin(&callbacks), dwfl_end) {
    if (session_ == nullptr) return;
    module_ = dwfl_report_offline(session_.get(), path.c_str(), path.c_str(), -1);
    dwfl_report_end(session_.get(), nullptr, nullptr);
    if (module_ == nullptr || dwfl_module_getelf(module_, &bias_) == nullptr) {
      module_ = nullptr;
      return;
    }
    const unsigned char* bytes = nullptr;
    GElf_Addr address = 0;
    const int count = dwfl_module_build_id(module_, &bytes, &address);
    is_other_ = !build_id.empty() && (count <= 0 || hexadecimal(bytes, count) != build_id);
  }

  bool is_other() const { return is_other_; }

  void name(report::NamedFrame& frame) const {
    if (module_ == nullptr || is_other_ || frame.offset == 0) return;
    const Dwarf_Addr address = frame.offset - 1 + bias_;  // of the call; it returns to what comes after
    if (const char* const symbol = dwfl_module_addrname(module_, address); symbol != nullptr)
      frame.function = function_name(symbol);
    Dwfl_Line* const line = dwfl_module_getsrc(module_, address);
    if (line == nullptr) return;
    if (const char* const file = dwfl_lineinfo(line, nullptr, &frame.line, nullptr, nullptr, nullptr); file != nullptr)
      frame.file = file;
  }

 private:
  static constexpr Dwfl_Callbacks callbacks{.find_elf = dwfl_build_id_find_elf,
                                            .find_debuginfo = dwfl_standard_find_debuginfo,
                                            .section_address = dwfl_offline_section_address,
                                            .debuginfo_path = nullptr};

  std::unique_ptr<Dwfl, decltype(&dwfl_end)> session_;
  Dwfl_Module* module_ = nullptr;
  GElf_Addr bias_ = 0;
  bool is_other_ = false;
};

void Symbols::name(report::NamedFrame& frame) {
  if (frame.module.empty() || !frame.python.empty()) return;
  const auto [entry, is_new] = files_.try_emplace({frame.module, frame.build_id}, nullptr);
  if (is_new) {
    entry->second = std::make_unique<File>(frame.module, frame.build_id);
    if (entry->second->is_other())
      notes_.push_back(
          fmt::format("{} has changed since the run: call sites in it are shown as addresses.", frame.module));
  }
  entry->second->name(frame);
}

#else

class Symbols::File {};

void Symbols::name(report::NamedFrame&) {}

#endif

Symbols::Symbols() = default;
Symbols::~Symbols() = default;

std::vector<std::string> symbolise(const CallSites& sites) {
  Symbols symbols;
  for (std::vector<report::NamedFrame>* const site : sites)
    for (report::NamedFrame& frame : *site) symbols.name(frame);
  return symbols.notes();
}

void symbolise(report::Report& analysis) {
  CallSites sites;
  for (report::CallSiteFigures& site : analysis.call_sites) sites.push_back(&site.frames);
  for (report::WholeRun::Site& site : analysis.whole_run.sites) sites.push_back(&site.frames);
  for (report::WeakFigures& weak : analysis.weak)
    for (report::WeakSite& site : weak.sites) {
      sites.push_back(&site.frames);
      sites.push_back(&site.ended);
    }
  for (report::TrialFigures& trial : analysis.trials) sites.push_back(&trial.call_site);
  for (report::PendingCall& pending : analysis.pending) {
    sites.push_back(&pending.call_site);
    for (report::LastSign& sign : pending.last_signs) sites.push_back(&sign.call_site);
  }
  for (report::CostlyCall& call : analysis.costly_calls) {
    sites.push_back(&call.frames);
    sites.push_back(&call.meanwhile.frames);
  }
  for (report::RankFigures& rank : analysis.late_ranks) {
    sites.push_back(&rank.late_at);
    sites.push_back(&rank.long_at);
  }
  for (std::string& note : symbolise(sites)) analysis.notes.push_back(std::move(note));
  report::put_in_words(analysis);  // they name lines of the program, too
}

}  // namespace papaya
