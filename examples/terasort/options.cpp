#include "options.hpp"

#include <CLI/CLI.hpp>
#include <map>

#include "record.hpp"

namespace terasort {

namespace {

const std::map<std::string, Mode> modes{
    {"notified", Mode::notified}, {"alltoallv", Mode::alltoallv}, {"single", Mode::single}};

void add_generated(CLI::App& command, Options& options) {
  command.add_option("-n,--records", options.records, "Records of each rank")
      ->capture_default_str()
      ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{1} << 40));
  command.add_flag("-a,--ascii", options.is_ascii, "Keys and filler that can be printed, as gensort -a makes them");
  command.add_option("--skew", options.skew, "Share of the records that have one and the same key")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1.0));
}

void add_sort(CLI::App& command, Options& options) {
  command.add_option("-m,--mode", options.mode, "notified, alltoallv or, in one process, single")
      ->transform(CLI::CheckedTransformer(modes, CLI::ignore_case))
      ->default_str("notified");
  add_generated(command, options);
  command.add_option("-i,--input", options.input, "File of records; without it they are generated");
  command.add_option("-o,--output", options.output,
                     "File that the sorted records go to; without it they are only validated");
  command
      .add_option("--memory", options.memory,
                  "Bytes of a rank, as 256M; where the records need more, sorted runs go to files (default: a share "
                  "of what is free)")
      ->transform(CLI::AsSizeValue(false));
  command.add_option("--scratch", options.scratch, "Folder for sorted runs")->capture_default_str();
  command.add_option("--buffer", options.buffer, "notified: bytes that are written at once")
      ->transform(CLI::AsSizeValue(false))
      ->capture_default_str()
      ->check(CLI::Range(record_bytes, std::size_t{1} << 30));
  command
      .add_option("--slots", options.slots,
                  "notified: buffers that each rank has room for from each other one (default: of 16 MB "
                  "in all, at least 2, at most 16)")
      ->check(CLI::Range(1, 1024));
  command.add_option("--samples", options.samples, "Keys that each rank samples for the splitters")
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 24));
  command.add_option("--run", options.run, "notified: records that are sorted at once while others arrive")
      ->capture_default_str()
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 31));
  command
      .add_option("--bins", options.bins,
                  "Bins that arriving records are put into by their keys, where memory suffices; 0: runs in the order "
                  "of arrival, merged in the end (default: notified: of 16384 records, the others: 0)")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 20));
  command
      .add_option("--late", options.late, "Seconds that rank 0 comes later to the shuffle, as if its disk were slow")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 3600.0));
  command.add_option("--json", options.json, "File for the results");
}

}  // namespace

const char* name_of(Mode mode) noexcept {
  return mode == Mode::notified ? "notified" : mode == Mode::alltoallv ? "alltoallv" : "single";
}

std::optional<Options> parse(int argc, char** argv, int rank, int& code) {
  Options options;
  CLI::App app{
      "Sorts records of 100 bytes on all ranks, with an asynchronous shuffle by notified one-sided "
      "communication or with MPI_Alltoallv."};
  app.require_subcommand(1);
  CLI::App* const sort = app.add_subcommand("sort", "Sort, then validate the order and the checksum");
  add_sort(*sort, options);
  CLI::App* const generate = app.add_subcommand("generate", "Write a file as gensort does");
  add_generated(*generate, options);
  generate->add_option("file", options.output, "File to write")->required();
  CLI::App* const validate = app.add_subcommand("validate", "Check a file as valsort does");
  validate->add_option("file", options.input, "File to check")->required();
  validate->add_option("--checksum", options.checksum, "Fail unless it has this checksum");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    code = rank == 0 ? app.exit(error) : error.get_exit_code();
    if (code != 0) code = 2;
    return std::nullopt;
  }
  options.command = sort->parsed() ? Command::sort : generate->parsed() ? Command::generate : Command::validate;
  return options;
}

}  // namespace terasort
