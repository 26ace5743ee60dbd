// How the workers of a program that MPI started find each other: all say on which machine they are,
// then the first worker of each machine makes its shared memory.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "base/interrupt.h"
#include "workers/machines_transport.h"

namespace tn::workers {
namespace {

constexpr int kStartTag = 1;
constexpr auto kPatience = std::chrono::seconds(60);

struct Hello {
  char host[128], system[64];  // `system`: of the running kernel, as hosts may have equal names
  int32_t process, file;
};

void put(std::string_view text, char* to, size_t room) {
  std::memcpy(to, text.data(), std::min(text.size(), room - 1));
}

Hello own_hello() {
  Hello own = {};
  const char* given = std::getenv("TENON_HOST");
  char host[sizeof own.host] = "unknown";
  gethostname(host, sizeof host - 1);
  put(given && *given ? given : host, own.host, sizeof own.host);
  if (std::FILE* file = std::fopen("/proc/sys/kernel/random/boot_id", "r")) {
    if (!std::fgets(own.system, sizeof own.system, file)) own.system[0] = 0;
    std::fclose(file);
  }
  own.process = getpid(), own.file = -1;
  return own;
}

/// What all workers say, by rank.
std::vector<Hello> say_to_all(MpiLink& link, Hello own) {
  auto began = std::chrono::steady_clock::now();
  auto check = [&] {
    stop_if_asked();
    if (std::chrono::steady_clock::now() - began > kPatience)
      fail("workers: the {} workers that MPI started do not answer within {} s: this is worker {}",
           link.size(), kPatience.count(), link.rank());
  };
  std::vector<Hello> all(static_cast<size_t>(link.size()));
  all[static_cast<size_t>(link.rank())] = own;
  std::vector<Transfer> in, out;
  auto whole = static_cast<int64_t>(all.size() * sizeof(Hello));
  for (int r = 1; r < link.size(); ++r) {
    in.push_back({false, r, kStartTag, &all[static_cast<size_t>(r)], sizeof(Hello)});
    out.push_back({true, r, kStartTag, all.data(), whole});
  }
  if (link.rank() != 0) {
    in = {{true, 0, kStartTag, &own, sizeof own}};
    out = {{false, 0, kStartTag, all.data(), whole}};
  }
  link.run(in, check);
  link.run(out, check);
  return all;
}

}  // namespace

std::unique_ptr<Transport> open_machines(const LaunchEnvironment& launch) {
  MpiLink& link = MpiLink::open(launch);
  Hello own = own_hello();
  std::vector<Hello> all = say_to_all(link, own);
  Members members;
  members.tag = 2;
  std::vector<const Hello*> firsts;  // of each machine
  for (int r = 0; r < link.size(); ++r) {
    const Hello& hello = all[static_cast<size_t>(r)];
    auto found = std::ranges::find_if(firsts, [&](const Hello* first) {
      return !std::strcmp(first->host, hello.host) && !std::strcmp(first->system, hello.system);
    });
    auto m = static_cast<size_t>(found - firsts.begin());
    if (found == firsts.end())
      firsts.push_back(&hello), members.machines.push_back({hello.host, {}});
    members.machines[m].workers.push_back(r);
    members.in_mpi.push_back(r);
    if (r == link.rank()) members.own = static_cast<int>(m);
  }
  const std::vector<int> here = members.machines[static_cast<size_t>(members.own)].workers;
  int place = static_cast<int>(std::ranges::find(here, link.rank()) - here.begin());
  std::shared_ptr<WorldMemory> memory;
  if (place == 0) memory = WorldMemory::make(static_cast<int>(here.size()));
  own.file = memory ? memory->file() : -1;
  all = say_to_all(link, own);
  const Hello& first = all[static_cast<size_t>(here[0])];
  if (!memory) memory = WorldMemory::open(first.process, first.file);
  link.watch(memory, members.machines, members.own);
  return std::make_unique<MachinesTransport>(link, std::move(memory), place, std::move(members));
}

}  // namespace tn::workers
