// The papaya command.
#include <exception>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "base/version.hpp"
#include "tools/bench_program.hpp"
#include "tools/command.hpp"
#include "tools/commit.hpp"

int main(int argc, char** argv) {
  try {
    CLI::App app{"papaya shows who arrives late at which MPI collective and what that costs, and makes it cost less.",
                 "papaya"};
    app.set_version_flag("--version", "papaya " PAPAYA_VERSION + (std::string(" (commit ") + papaya::commit + ")"));
    app.require_subcommand(0, 1);
    int exit_code = papaya::exit_fine;
    papaya::add_run(app, exit_code);
    papaya::add_report(app, exit_code);
    papaya::add_top(app, exit_code);
    papaya::add_trace(app, exit_code);
    papaya::add_replay(app, exit_code);
    papaya::add_compare(app, exit_code);
    papaya::add_doctor(app, exit_code);
    papaya::add_info(app, exit_code);
    const std::vector<std::string> given(argv + 1, argv + argc);
    papaya::add_tune(app, given, exit_code);
    papaya::add_export(app, exit_code);
    papaya::add_bench(app, given, exit_code);
    // `papaya run -- PROGRAM`: CLI11 has no notion of a separator before the rest of a command.
    std::vector<char*> words(argv, argv + argc);
    if (argc > 3 && std::string_view(words[1]) == "run" && std::string_view(words[2]) == "--")
      words.erase(words.begin() + 2);
    try {
      app.parse(static_cast<int>(words.size()), words.data());
    } catch (const CLI::ParseError& outcome) {
      // --help and --version end the parse too, and succeed.
      if (const std::string name = given.empty() ? std::string() : given.front();
          (name == "bench" || name == "tune") && outcome.get_exit_code() != 0)
        return papaya::launched_usage(name, outcome.what());
      return app.exit(outcome) == 0 ? papaya::exit_fine : papaya::exit_usage;
    }
    if (app.get_subcommands().empty()) std::cout << app.help();
    return exit_code;
  } catch (const std::exception& error) {
    std::cerr << "papaya: " << error.what() << "\n";
    return papaya::exit_failed;
  }
}
