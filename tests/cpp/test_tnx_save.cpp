// Saving executables: atomic, interrupted, by several writers.
#include <doctest/doctest.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <random>
#include <thread>

#include "base/text.h"
#include "errors.h"
#include "files.h"
#include "storage/tnx.h"

using namespace tn;
using namespace tn::tnx;

namespace {

Writer sample(const std::string& text = "graph") {
  Writer writer;
  writer.add(Kind::graph, "", text);
  return writer;
}

std::string graph_in(const std::string& path) { return File::open(path)->read(Kind::graph); }

size_t files_in(const std::string& folder) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(folder), {}));
}

mode_t mode_of(const std::string& path) {
  struct stat s;
  REQUIRE(stat(path.c_str(), &s) == 0);
  return s.st_mode & 07777;
}

}  // namespace

TEST_CASE("save: a new file has the permissions of the umask, a replaced one keeps its own") {
  Folder folder;
  std::string path = folder.path + "/f.tnx";
  mode_t before = umask(027);
  sample("one").save(path);
  CHECK(mode_of(path) == 0640);
  chmod(path.c_str(), 0604);
  sample("two").save(path);
  umask(before);
  CHECK(mode_of(path) == 0604);
  CHECK(graph_in(path) == "two");
  CHECK(files_in(folder.path) == 1);
  CHECK(slurp(path) == sample("two").bytes());
}

TEST_CASE("save: links are followed, also to what is not there yet") {
  Folder folder;
  fs::create_directory(folder.path + "/inner");
  fs::create_symlink("inner/real.tnx", folder.path + "/link.tnx");
  fs::create_symlink("link.tnx", folder.path + "/link2.tnx");
  sample("one").save(folder.path + "/link2.tnx");
  CHECK(graph_in(folder.path + "/inner/real.tnx") == "one");
  sample("two").save(folder.path + "/link.tnx");
  CHECK(graph_in(folder.path + "/inner/real.tnx") == "two");
  CHECK(fs::is_symlink(folder.path + "/link.tnx"));
  fs::create_symlink("circle", folder.path + "/circle");
  CHECK(contains(error_in([&] { sample().save(folder.path + "/circle"); }),
                 "circular symbolic link"));
}

TEST_CASE("save: what was loaded from the old file stays") {
  Folder folder;
  std::string path = folder.path + "/f.tnx", first(5000, 'a'), second(100, 'b');
  for (const std::string* elements : {&first, &second}) {
    std::shared_ptr<const File> old;
    if (elements == &second) old = File::open(path);
    Writer writer;
    writer.add_weights({{elements->data(), elements->size()}});
    writer.save(path);
    if (old) CHECK(std::string(old->weights(0, 5000).data<char>(), 5000) == first);
  }
  CHECK(File::open(path)->weights(0, 100).data<char>()[99] == 'b');
}

TEST_CASE("save: errors say why, and leave everything as it was") {
  Folder folder;
  std::string path = folder.path + "/f.tnx";
  sample("old").save(path);
  auto error = [](const std::string& to) { return error_in([&] { sample("new").save(to); }); };
  CHECK(contains(error(folder.path), "is a directory\n  hint: give the name of a file in it"));
  CHECK(contains(error(folder.path + "/"), "is a directory"));
  CHECK(contains(error(""), "save: "));
  CHECK(contains(error("/dev/null"), "is not a regular file"));
  CHECK(contains(error(folder.path + "/no/f.tnx"), "/no: No such file or directory"));
  CHECK(contains(error(folder.path + "/f.tnx/g.tnx"), "Not a directory"));
  CHECK(contains(error("/proc/f.tnx"), "save: cannot write /proc/f.tnx: folder /proc: "));
  CHECK(contains(error(folder.path + "/" + std::string(300, 'n')), "File name too long"));
  if (geteuid() != 0) {  // who may do everything
    chmod(path.c_str(), 0444);
    CHECK(contains(error(path), "Permission denied"));
    chmod(folder.path.c_str(), 0555);
    CHECK(contains(error(folder.path + "/g.tnx"), "Permission denied"));
    chmod(folder.path.c_str(), 0755);
  }
  CHECK(graph_in(path) == "old");
  CHECK(files_in(folder.path) == 1);
}

TEST_CASE("save: the limit of the size of files is an error, not a signal") {
  Folder folder;
  std::string path = folder.path + "/f.tnx", large(1 << 20, 'l');
  sample("old").save(path);
  Writer writer;
  writer.add_weights({{large.data(), large.size()}});
  int status = status_of(spawn([&] {
    rlimit limit{1 << 16, 1 << 16};
    setrlimit(RLIMIT_FSIZE, &limit);
    _exit(contains(error_in([&] { writer.save(path); }), "File too large") ? 7 : 8);
  }));
  CHECK(WEXITSTATUS(status) == 7);
  CHECK(graph_in(path) == "old");
  CHECK(files_in(folder.path) == 1);
}

TEST_CASE("save: a long name has room for its part") {
  Folder folder;
  std::string path = folder.path + "/" + std::string(251, 'n') + ".tnx";
  sample().save(path);
  CHECK(graph_in(path) == "graph");
}

TEST_CASE("save: threads that save the same file all succeed, and one of them is last") {
  Folder folder;
  std::string path = folder.path + "/f.tnx";
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int k = 0; k < 10; ++k) sample(format("thread {}", t)).save(path);
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(graph_in(path).starts_with("thread "));
  CHECK(files_in(folder.path) == 1);
}

TEST_CASE("save: what a killed writer left is removed, what a living one holds and others stay") {
  Folder folder;
  std::string path = folder.path + "/f.tnx", digits = "0123456789abcdef";
  std::string dead = format("{}/.f.tnx.{}.tnx-part", folder.path, digits);
  std::string living = format("{}/.f.tnx.1{}.tnx-part", folder.path, digits.substr(1));
  std::string other = format("{}/.f.tnx.g.tnx.{}.tnx-part", folder.path, digits);
  for (const std::string& part : {dead, living, other}) spill(part, "half");
  int held = open(living.c_str(), O_RDWR);
  REQUIRE(flock(held, LOCK_EX) == 0);
  sample().save(path);
  CHECK_FALSE(fs::exists(dead));
  CHECK(fs::exists(living));
  CHECK(fs::exists(other));
  close(held);
  sample().save(path);
  CHECK_FALSE(fs::exists(living));
}

TEST_CASE("save: whoever is killed while saving leaves the old file or the new one") {
  Folder folder;
  std::string path = folder.path + "/f.tnx", elements(1 << 20, '\0');
  auto save = [&](char version) {
    std::ranges::fill(elements, version);
    Writer writer;
    writer.add(Kind::graph, "", std::string(1, version));
    writer.add_weights({{elements.data(), elements.size()}});
    writer.save(path);
  };
  auto began = std::chrono::steady_clock::now();
  save('a');
  std::chrono::nanoseconds once = std::chrono::steady_clock::now() - began;
  once = std::min<std::chrono::nanoseconds>(once, std::chrono::milliseconds(20));
  std::mt19937 random(3);
  int replaced = 0;
  for (int k = 0; k < 100; ++k) {
    std::string before = graph_in(path);
    int saved[2];
    REQUIRE(pipe(saved) == 0);
    pid_t child = spawn([&] {
      for (int round = k;; ++round) {
        save(static_cast<char>('b' + round % 25));
        if (write(saved[1], "s", 1) != 1) return;
      }
    });
    close(saved[1]);
    char once_saved;
    if (k % 2) CHECK(read(saved[0], &once_saved, 1) == 1);  // every other one gets that far
    std::this_thread::sleep_for(once * (random() % 250) / 100);
    kill(child, SIGKILL);
    CHECK(WIFSIGNALED(status_of(child)));
    close(saved[0]);
    auto file = File::open(path);
    file->verify();
    std::string graph = file->read(Kind::graph);
    BufferRef weights = file->weights(0, elements.size());
    CHECK(std::string_view(weights.data<char>(), weights.bytes()) ==
          std::string(elements.size(), graph[0]));
    replaced += graph != before;
  }
  CHECK(replaced > 0);
  save('y');
  CHECK(files_in(folder.path) == 1);
}
