// A program that knows no MPI and loads a plugin that does, with RTLD_LOCAL, as an interpreter does: libmpi
// is then in no scope that dlsym(RTLD_NEXT) searches.
//   plugin_host PLUGIN.so [deepbind]
// deepbind: what the plugin calls is looked up among its own libraries first, past all that is preloaded.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char** argv) {
  const int deep = argc > 2 && strcmp(argv[2], "deepbind") == 0 ? RTLD_DEEPBIND : 0;
  void* plugin = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL | deep) : NULL;
  if (plugin == NULL) {
    fprintf(stderr, "cannot load the plugin: %s\n", dlerror());
    return 2;
  }
  int (*run)(void) = (int (*)(void))dlsym(plugin, "run_plugin");
  return run != NULL ? run() : 2;
}
