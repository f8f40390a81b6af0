// What a program, `papaya bench` and include/papaya.h ask of a flavour besides MPI's functions. libpapaya.so finds them
// by name (interpose/flavour.hpp).
#pragma once

extern "C" {
__attribute__((visibility("default"))) int papaya_MPI_Pcontrol(int level, ...);
__attribute__((visibility("default"))) void papaya_flavour_phase(const char* name);
__attribute__((visibility("default"))) int papaya_flavour_select(const char* collective, const char* selection);
__attribute__((visibility("default"))) int papaya_flavour_explain(const char* collective, const void* comm,
                                                                  unsigned long bytes, char* text, unsigned long size);
__attribute__((visibility("default"))) unsigned long papaya_flavour_replaced(const char* collective);
}
