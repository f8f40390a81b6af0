// A program that knows no MPI and loads a plugin that does, with RTLD_LOCAL, as an interpreter does: libmpi
// is then in no scope that dlsym(RTLD_NEXT) searches.
//   plugin_host PLUGIN.so
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char** argv) {
  void* plugin = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  if (plugin == NULL) {
    fprintf(stderr, "cannot load the plugin: %s\n", dlerror());
    return 2;
  }
  int (*run)(void) = (int (*)(void))dlsym(plugin, "run_plugin");
  return run != NULL ? run() : 2;
}
