// papaya run: preloads libpapaya.so into one process and becomes the program.
#include <string>
#include <vector>

#include "tools/command.hpp"
#include "tools/preload.hpp"

namespace papaya {

void add_run(CLI::App& app, int& exit_code) {
  CLI::App* const command =
      app.add_subcommand("run", "run an MPI program with papaya: mpirun -n N papaya run PROGRAM [ARGUMENTS...]");
  command->footer("Settings come from the environment: papaya info --env lists them.");
  command->prefix_command();
  command->callback([command, &exit_code] {
    const std::vector<std::string> words = command->remaining();
    if (words.empty()) throw CLI::RequiredError("PROGRAM");
    if (words.front().front() == '-')
      throw CLI::ExtrasError({words.front()});  // no option of ours, and no program's name
    const std::string library = find_library();
    exit_code = library.empty() ? exit_failed : exec_preloaded(library, words);
  });
}

}  // namespace papaya
