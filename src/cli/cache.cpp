// `tenon cache`: what is kept on disk between processes.
#include "base/error.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "runtime/memory_use.h"
#include "storage/disk_cache.h"

namespace tn {
namespace {

DiskCache& open_cache() {
  DiskCache& cache = DiskCache::shared();
  if (!cache.fault().empty())
    fail(Hint{"`tenon doctor` looks at it; TENON_CACHE_DIR names another folder"},
         "no disk cache: {}", cache.fault());
  return cache;
}

std::string text_of(int64_t bytes) { return bytes_text(static_cast<size_t>(bytes)); }

void show_cache(bool json) {
  DiskCache& cache = DiskCache::shared();
  DiskCache::Usage usage = cache.usage();
  if (json)
    return write_json(Json{{"directory", cache.directory()},
                           {"fault", cache.fault()},
                           {"entries", usage.entries},
                           {"bytes", usage.bytes},
                           {"most_bytes", cache.most_bytes()}});
  if (!cache.fault().empty()) return write_out(format("no disk cache: {}\n", cache.fault()));
  write_out(
      table({{"directory", cache.directory()},
             {"entries", format("{}", usage.entries)},
             {"size", format("{} of {}", text_of(usage.bytes), text_of(cache.most_bytes()))}}));
}

/// Says what a change of the cache left, and took away.
void report(const DiskCache::Usage& before, bool json) {
  DiskCache::Usage after = open_cache().usage();
  int64_t removed = std::max(before.entries - after.entries, int64_t{0});
  int64_t freed = std::max(before.bytes - after.bytes, int64_t{0});
  if (json)
    write_json(Json{{"removed", removed}, {"freed_bytes", freed}, {"entries", after.entries}});
  else
    write_out(format("removed {} entries, {}; {} stay\n", removed, text_of(freed), after.entries));
}

}  // namespace

void add_cache(CLI::App& app) {
  struct Options {
    bool json = false;
    std::string to;
  };
  auto options = std::make_shared<Options>();
  CLI::App* cache = app.add_subcommand("cache", "What is kept on disk between processes");
  cache->add_flag("--json", options->json, "As JSON");
  cache->require_subcommand(0, 1);
  cache->fallthrough();
  CLI::App* clear = cache->add_subcommand("clear", "Remove everything");
  clear->callback([options] {
    DiskCache::Usage before = open_cache().usage();
    open_cache().clear();
    report(before, options->json);
  });
  CLI::App* trim = cache->add_subcommand("trim", "Remove what was used longest ago");
  trim->add_option("--to", options->to, "Until it is smaller than this: 500M (its own limit)");
  trim->callback([options] {
    DiskCache::Usage before = open_cache().usage();
    int64_t most =
        options->to.empty() ? open_cache().most_bytes() : parse_bytes("--to", options->to);
    DiskCache(open_cache().directory(), most).trim();
    report(before, options->json);
  });
  cache->callback([options, cache] {
    if (cache->get_subcommands().empty()) show_cache(options->json);
  });
}

}  // namespace tn
