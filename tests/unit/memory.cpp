// What control groups leave, read from folders like those of the kernel.
#include "base/memory.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/catch.hpp"

namespace papaya {

namespace {

using memory::ControlGroups;
using memory::unlimited;

constexpr std::uint64_t mib = 1 << 20;

class Machine {
 public:
  Machine() {
    std::string pattern = std::filesystem::temp_directory_path() / "papaya-memory-XXXXXX";
    root = mkdtemp(pattern.data());
  }
  ~Machine() { std::filesystem::remove_all(root); }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((root / name).parent_path());
    std::ofstream(root / name) << text;
  }
  // A line of mountinfo. `mount` is below the machine's folder.
  std::string mounted(const std::string& what, const std::string& mount, const std::string& type,
                      const std::string& options) const {
    return "35 31 0:32 " + what + " " + (root / mount).string() + " rw,relatime shared:9 - " + type + " cgroup " +
           options + "\n";
  }
  void v1(const std::string& group, std::uint64_t limit, std::uint64_t used, std::uint64_t files) const {
    write(group + "/memory.limit_in_bytes", std::to_string(limit) + "\n");
    write(group + "/memory.usage_in_bytes", std::to_string(used) + "\n");
    write(group + "/memory.stat", "cache 1\ninactive_file 5\ntotal_inactive_file " + std::to_string(files - files / 4) +
                                      "\ntotal_active_file " + std::to_string(files / 4) + "\n");
  }
  void v2(const std::string& group, const std::string& limit, const std::string& high, std::uint64_t used,
          std::uint64_t files) const {
    write(group + "/memory.max", limit + "\n");
    write(group + "/memory.high", high + "\n");
    write(group + "/memory.current", std::to_string(used) + "\n");
    write(group + "/memory.stat", "anon 1\nfile 999\ninactive_file " + std::to_string(files) + "\nactive_file 0\n");
  }
  std::uint64_t left() const { return ControlGroups(root / "proc").left(); }

  std::filesystem::path root;
};

}  // namespace

TEST_CASE("a control group's memory limit is the least of it and those around it") {
  const Machine machine;
  CHECK(machine.left() == unlimited);  // neither file
  SECTION("version 2") {
    machine.write("proc/cgroup", "0::/job/rank\n");
    machine.write("proc/mountinfo",
                  "22 27 0:21 / /proc rw,relatime - proc proc rw\n" + machine.mounted("/", "cg", "cgroup2", "rw"));
    CHECK(machine.left() == unlimited);
    machine.v2("cg/job/rank", "max", "max", 10 * mib, 0);
    machine.v2("cg/job", "max", "max", 10 * mib, 0);
    CHECK(machine.left() == unlimited);
    machine.v2("cg/job", std::to_string(100 * mib), "max", 70 * mib, 20 * mib);
    CHECK(machine.left() == 50 * mib);
    machine.v2("cg/job/rank", "max", std::to_string(40 * mib), 10 * mib, 0);
    CHECK(machine.left() == 30 * mib);
    machine.v2("cg/job/rank", std::to_string(40 * mib), "max", 60 * mib, 0);
    CHECK(machine.left() == 0);
  }
  SECTION("version 1 beside a version 2 that has no memory controller") {
    machine.write("proc/cgroup", "8:pids:/other\n4:cpu,memory:/job/step\n1:name=systemd:/\n0::/\n");
    machine.write("proc/mountinfo", machine.mounted("/", "pids", "cgroup", "rw,pids") +
                                        machine.mounted("/", "memory", "cgroup", "rw,cpu,memory") +
                                        machine.mounted("/", "unified", "cgroup2", "rw"));
    machine.v1("memory/job/step", 9223372036854771712u, 10 * mib, 0);
    CHECK(machine.left() == unlimited);
    machine.v1("memory", 200 * mib, 100 * mib, 0);
    CHECK(machine.left() == 100 * mib);
    machine.v1("memory/job", 64 * mib, 60 * mib, 16 * mib);
    CHECK(machine.left() == 20 * mib);
  }
  SECTION("a container that sees its own part of the tree under the path outside") {
    machine.write("proc/cgroup", "4:memory:/docker/abc/job\n");
    machine.write("proc/mountinfo", machine.mounted("/docker/abc", "memory", "cgroup", "rw,memory"));
    machine.v1("memory", 64 * mib, 4 * mib, 0);
    CHECK(machine.left() == 60 * mib);
    machine.v1("memory/job", 32 * mib, 4 * mib, 0);
    CHECK(machine.left() == 28 * mib);
  }
  SECTION("a mount of a part of the tree that the process is not in, and one outside its namespace") {
    machine.v1("memory", 64 * mib, 4 * mib, 0);
    for (const char* const path : {"/elsewhere", "/../outside"}) {
      machine.write("proc/cgroup", std::string("4:memory:") + path + "\n");
      machine.write("proc/mountinfo",
                    machine.mounted(path[1] == '.' ? "/" : "/docker/abc", "memory", "cgroup", "rw,memory"));
      CHECK(machine.left() == 60 * mib);
    }
  }
}

TEST_CASE("this machine has memory") {
  CHECK(memory::available() > 0);
  // Others take and give back memory between the two looks.
  CHECK(memory::available_shared() <= memory::available() + (std::uint64_t{1} << 30));
}

}  // namespace papaya
