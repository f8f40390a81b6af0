// examples/horovod_calls.c, compiled into a library whose functions have names of Horovod's (meson.build), as
// plugin_host runs it.
int run_horovod_calls(int argc, char** argv);

__attribute__((visibility("default"))) int run_plugin(void);

int run_plugin(void) {
  char* arguments[] = {"horovod_calls", "--steps", "4", "--shrink", "8", "--layer-us", "1000", 0};
  return run_horovod_calls(7, arguments);
}
