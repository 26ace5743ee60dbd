// An Explanation as people read it on a terminal.
#include <algorithm>
#include <map>

#include "observe/explain.h"
#include "observe/stage_text.h"
#include "runtime/memory_use.h"

namespace tn {

namespace {

constexpr size_t kMostRows = 24;  // of the timeline; steps beyond that share rows
constexpr int64_t kBar = 40;      // characters

std::string bytes(int64_t count) { return bytes_text(static_cast<size_t>(count)); }

std::string place(Loc loc) {
  std::string at = to_text(loc);
  return at.empty() ? at : format("  ({})", at);
}

std::string count(size_t n, std::string_view noun) {
  return format("{} {}{}", n, noun, n == 1 ? "" : "s");
}

/// "add, relu, 3 multiply".
std::string ops_text(const std::vector<ExplainedOp>& ops) {
  std::vector<std::pair<std::string, size_t>> counted;
  for (const ExplainedOp& op : ops) {
    auto known = std::ranges::find(counted, op.name, &std::pair<std::string, size_t>::first);
    if (known == counted.end()) counted.emplace_back(op.name, 0), known = counted.end() - 1;
    ++known->second;
  }
  std::vector<std::string> texts;
  for (const auto& [name, n] : counted) texts.push_back(n == 1 ? name : format("{} {}", n, name));
  return format("{}", join(texts, ", "));
}

struct ExplanationText {
  const Explanation& e;
  std::string text = {};

  void head(std::string_view title) { text += format("\n{}\n", title); }
  template <class... A>
  void line(format_string<A...> form, A&&... args) {
    text += "  " + format(form, std::forward<A>(args)...) + '\n';
  }
  /// With every line indented.
  void block(std::string_view body, std::string_view indent = "  ") {
    while (!body.empty()) {
      size_t end = std::min(body.find('\n'), body.size());
      text += format("{}{}\n", indent, body.substr(0, end));
      body.remove_prefix(std::min(end + 1, body.size()));
    }
  }

  void add_summary() {
    std::map<std::string_view, size_t> kinds;
    for (const ExplainedStep& s : e.steps) ++kinds[to_text(s.kind)];
    std::vector<std::string> parts;
    if (size_t n = kinds["code"]) parts.push_back(count(n, "kernel"));
    if (size_t n = kinds["library"]) parts.push_back(count(n, "library call"));
    if (size_t n = kinds["interpreted"]) parts.push_back(count(n, "interpreted kernel"));
    if (parts.empty()) parts.push_back("nothing to run");
    text = format("{}: {}, peak memory {}\n", e.function, join(parts, ", "), bytes(e.memory.peak));
  }
  void add_traces() {
    if (e.traces.empty()) return;
    head("traces");
    for (size_t i = 0; i < e.traces.size(); ++i) {
      line("{}. {}", i + 1, e.traces[i].substr(0, e.traces[i].find('\n')));
      if (size_t end = e.traces[i].find('\n'); end != std::string::npos)
        block(std::string_view(e.traces[i]).substr(end + 1), "     ");
    }
  }
  void add_sizes() {
    if (e.sizes.empty()) return;
    head("sizes");
    for (const ExplainedSize& s : e.sizes) line("{} = {} here: {}", s.symbol, s.value, s.path);
    for (const std::string& guard : e.guards) line("holds: {}", guard);
  }
  void add_decisions() {
    if (e.decisions.empty()) return;
    head("decisions");
    for (const Decision& d : e.decisions) line("{}", to_text(d));
  }
  void add_collectives() {
    if (e.sharding.empty()) return;
    head("collectives");
    block(sharding::to_text(e.collectives));
  }
  void add_steps() {
    if (e.steps.empty()) return;
    head("steps");
    for (const ExplainedStep& s : e.steps) {
      line("{:>3}  {:<11}  {}: reads {}, writes {}{}", s.step, to_text(s.kind), s.name,
           bytes(s.bytes_read), bytes(s.bytes_written), place(s.loc));
      if (s.ops.size() > 1) line("{:>18}  {}", "", ops_text(s.ops));
    }
  }
  void add_compilation() {
    const CompileCounts& c = e.counts;
    if (c.graphs == 0) return;
    head("compilation");
    line("{} compiled, {} from disk, {} from memory, {} interpreted; {}",
         count(static_cast<size_t>(c.compiled), "kernel"), c.from_disk, c.from_memory,
         c.interpreted, count(static_cast<size_t>(c.plans), "plan"));
    line("passes {:.2f} ms, fusion {:.2f} ms, lowering {:.2f} ms, code {:.2f} ms, memory {:.2f} ms",
         c.passes_ms, c.fusion_ms, c.lowering_ms, c.code_ms, c.memory_ms);
  }
  void add_memory() {
    head("memory");
    block(to_text(e.memory));
    const std::vector<int64_t>& needed = e.memory.needed;
    if (needed.empty()) return;
    head("memory over steps");
    int64_t most = std::max<int64_t>(1, *std::ranges::max_element(needed));
    size_t each = (needed.size() + kMostRows - 1) / kMostRows;
    for (size_t i = 0; i < needed.size(); i += each) {
      auto end = needed.begin() + static_cast<int64_t>(std::min(i + each, needed.size()));
      int64_t here = *std::max_element(needed.begin() + static_cast<int64_t>(i), end);
      auto width = static_cast<size_t>((here * kBar + most - 1) / most);
      line("{:>4}  {:<40}  {}{}", i, std::string(width, '#'), bytes(here),
           here == most ? "  <- most" : "");
    }
  }
};

}  // namespace

std::string to_text(const Explanation& explanation) {
  ExplanationText made{explanation};
  made.add_summary();
  made.add_traces();
  made.add_sizes();
  made.head("graph, optimised");
  made.block(explanation.graph);
  made.add_decisions();
  made.add_collectives();
  made.add_steps();
  made.add_compilation();
  made.add_memory();
  return made.text;
}

}  // namespace tn
