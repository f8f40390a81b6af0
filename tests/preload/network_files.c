/* Preloaded beside papaya: ranks' records as on a network file system, each rank a client of its own. What a rank
   writes into its record through a mapping only that rank sees, until it asks for the file to be written out (msync,
   fsync), as a system does half a minute later only. Each rank must seem to be on a node of its own. */
#define _GNU_SOURCE
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

static int server_file = -1; /* of this rank's record */
static int client_pages = -1;
static char* mapped; /* the pages of the first mapping, which is of the whole file */
static size_t mapped_bytes;

static int is_own_record(int file) {
  char link[64], path[4096], name[32];
  const char* rank = getenv("PMI_RANK") != NULL ? getenv("PMI_RANK") : getenv("OMPI_COMM_WORLD_RANK");
  if (file < 0 || rank == NULL) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  const ssize_t length = readlink(link, path, sizeof path);
  const int name_length = snprintf(name, sizeof name, "/rank-%05d.pap", atoi(rank));
  return length >= name_length && memcmp(path + length - name_length, name, (size_t)name_length) == 0;
}

void* mmap(void* address, size_t bytes, int protection, int flags, int file, off_t offset) {
  const int is_own = (flags & MAP_TYPE) == MAP_SHARED && is_own_record(file);
  struct stat status;
  if (is_own && client_pages < 0) {
    server_file = dup(file);
    client_pages = memfd_create("record", MFD_CLOEXEC);
    if (fstat(file, &status) != 0 || ftruncate(client_pages, status.st_size) != 0) abort();
  }
  void* const begin = (void*)syscall(SYS_mmap, address, bytes, protection, flags, is_own ? client_pages : file, offset);
  if (is_own && mapped == NULL && begin != MAP_FAILED) {
    mapped = begin;
    mapped_bytes = bytes;
  }
  return begin;
}

ssize_t pread(int file, void* to, size_t bytes, off_t offset) {
  return syscall(SYS_pread64, client_pages >= 0 && is_own_record(file) ? client_pages : file, to, bytes, offset);
}

int msync(void* begin, size_t bytes, int flags) {
  const size_t offset = (size_t)((char*)begin - mapped);
  if (mapped != NULL && offset < mapped_bytes && pwrite(server_file, begin, bytes, (off_t)offset) < 0) abort();
  return (int)syscall(SYS_msync, begin, bytes, flags);
}

int fsync(int file) {
  if (mapped != NULL && is_own_record(file)) return msync(mapped, mapped_bytes, MS_SYNC);
  return (int)syscall(SYS_fsync, file);
}

int fstatfs(int file, struct statfs* system) {
  const long code = syscall(SYS_fstatfs, file, system);
  if (code == 0) system->f_type = NFS_SUPER_MAGIC;
  return (int)code;
}
