// `tenon bench`: how long calls of an executable take.
#include <chrono>

#include "base/error.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/load_flags.h"
#include "cli/output.h"
#include "runtime/threads.h"

namespace tn {
namespace {

struct BenchOptions {
  std::string file;
  ArgumentOptions arguments;
  std::vector<std::string> sizes;
  double seconds = 1;
  int threads = 0;
  LoadFlags load;
  bool json = false;
};

/// "x.0=1,8,64" for every such option: all combinations.
std::vector<ChosenSizes> combinations(const std::vector<std::string>& texts) {
  std::vector<ChosenSizes> all = {{}};
  for (const std::string& text : texts) {
    size_t equals = text.find('=');
    std::vector<int64_t> values;
    if (equals == text.npos ||
        !CLI::detail::lexical_conversion<std::vector<int64_t>, std::vector<int64_t>>(
            CLI::detail::split(text.substr(equals + 1), ','), values))
      fail(Hint{"write x.0=1,8,64 for axis 0 of x, or batch=1,8,64 for a name"},
           "--size {}: not sizes", text);
    std::vector<ChosenSizes> longer;
    for (const ChosenSizes& chosen : all)
      for (int64_t value : values) {
        longer.push_back(chosen);
        longer.back()[text.substr(0, equals)] = value;
      }
    all = std::move(longer);
  }
  return all;
}

/// Seconds of calls, sorted.
std::vector<double> measure(const Executable& f, const Arguments& args, double seconds) {
  using Clock = std::chrono::steady_clock;
  auto call = [&] {
    auto began = Clock::now();
    eval(f(args.tensors, args.sizes));
    return std::chrono::duration<double>(Clock::now() - began).count();
  };
  call();
  call();
  std::vector<double> taken;
  for (double all = 0; all < seconds || taken.size() < 5;) all += taken.emplace_back(call());
  std::ranges::sort(taken);
  return taken;
}

std::string sizes_text(const ChosenSizes& chosen) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : chosen) parts.push_back(format("{}={}", name, value));
  return parts.empty() ? "opt" : format("{}", join(parts, " "));
}

void bench(BenchOptions& options) {
  if (options.threads) set_num_threads(options.threads);
  options.arguments.random = true;
  Executable f = Executable::load(options.file, options.load.settings());
  Json rows = Json::array();
  std::vector<std::vector<std::string>> lines = {
      {"sizes", "median", "fastest", "90 %", "calls", "calls/s"}};
  for (const ChosenSizes& chosen : combinations(options.sizes)) {
    Arguments args = make_arguments(f.inputs(), options.arguments, chosen);
    std::vector<double> taken = measure(f, args, options.seconds);
    double median = taken[taken.size() / 2], most = taken[taken.size() * 9 / 10];
    rows.push_back({{"sizes", chosen},
                    {"median", median},
                    {"fastest", taken[0]},
                    {"p90", most},
                    {"calls", taken.size()}});
    lines.push_back({sizes_text(chosen), seconds_text(median), seconds_text(taken[0]),
                     seconds_text(most), format("{}", taken.size()), format("{:.4g}", 1 / median)});
  }
  if (options.json)
    write_json({{"file", options.file},
                {"target", f.stats().target},
                {"threads", num_threads()},
                {"seconds", std::move(rows)}});
  else
    write_out(format("{}{}, {} threads\n", table(lines), f.stats().target, num_threads()));
}

}  // namespace

void add_bench(CLI::App& app) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* command = app.add_subcommand("bench", "Measure how long calls of an executable take");
  command->add_option("file", options->file, "The executable, .tnx")->required();
  command
      ->add_option("--size", options->sizes,
                   "Sizes to measure: x.0=1,8,64 for axis 0 of x, or batch=1,8,64 for a name")
      ->allow_extra_args(false)
      ->type_name("NAME=SIZES");
  options->arguments.add_to(*command);
  command->add_option("--seconds", options->seconds, "For each size (1)")
      ->check(CLI::Range(0.0, 3600.0));
  command->add_option("--threads", options->threads, "Of a call (the cores)")
      ->check(CLI::Range(1, 1024));
  options->load.add_to(*command);
  command->add_flag("--json", options->json, "As JSON; times in seconds");
  command->callback([options] { bench(*options); });
}

}  // namespace tn
