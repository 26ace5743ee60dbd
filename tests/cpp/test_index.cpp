// Indices through views, as the compiler makes them, against a table of cases, and every point of
// every case against arithmetic.
#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <map>

#include "base/error.h"
#include "loop/index.h"
#include "view_chains.h"

using namespace tn;

namespace {

const Dim kSymbols[] = {Dim::symbol("B", 1, 4096), Dim::symbol("S", 1, 4096),
                        Dim::symbol("V", 1, 4096)};
const int64_t kValues[][3] = {{1, 1, 1}, {2, 3, 5}, {5, 2, 1}, {3, 5, 2}, {1, 2, 3}, {2, 1, 2}};
const char* const kFile = "tests/golden/index/cases.tn";

struct GoldenCase {
  std::string title;
  std::string in, root;
  std::string results;  // the lines after those
};

std::vector<GoldenCase> read_cases(std::string& comments) {
  std::ifstream file(kFile);
  REQUIRE(file.good());
  std::vector<GoldenCase> cases;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') {
      comments += line + "\n";
    } else if (line[0] != ' ') {
      cases.push_back({line, {}, {}, {}});
    } else if (line.starts_with("  in ")) {
      cases.back().in = line.substr(7);
    } else if (line.starts_with("  root ")) {
      cases.back().root = line.substr(7);
    } else {
      cases.back().results += line + "\n";
    }
  }
  return cases;
}

std::vector<std::string> split_text(const std::string& s, const std::string& separator) {
  std::vector<std::string> parts;
  size_t first = 0;
  for (size_t at; (at = s.find(separator, first)) != std::string::npos;) {
    parts.push_back(s.substr(first, at - first));
    first = at + separator.size();
  }
  parts.push_back(s.substr(first));
  return parts;
}

// [[0, 1], [2]]
Roots read_roots(const std::string& text) {
  Roots roots;
  for (char c : text.substr(1)) {
    if (c == '[') roots.emplace_back();
    if (c >= '0' && c <= '9') roots.back().push_back(c - '0');
  }
  return roots;
}

/// The chains of some tensors, one after the other, and how many each has.
struct Case {
  std::vector<std::string> buffers;
  std::vector<size_t> counts;
  Refined refined;
};

void lower(const GoldenCase& golden, Case& out) {
  std::vector<Chain> chains;
  for (const std::string& text : split_text(golden.in, " || ")) {
    Chains read = parse_chains(text, kSymbols, out.buffers);
    out.counts.push_back(read.size());
    chains.insert(chains.end(), read.begin(), read.end());
  }
  Roots roots = golden.root.empty() ? one_root(chains[0].shape) : read_roots(golden.root);
  refine_chains(std::move(chains), std::move(roots), out.refined);
}

/// p, or p0 p1 ... when the root has several digits; the next root is q, and so on.
std::vector<std::string> names_of(const loop::Refinement& r) {
  std::vector<std::string> names;
  for (const loop::LoopAxis& axis : r.axes) {
    auto same = [&](const loop::LoopAxis& a) { return a.root == axis.root; };
    auto digit = &axis - &*std::ranges::find_if(r.axes, same);
    bool alone = std::ranges::count_if(r.axes, same) == 1;
    std::string letter(1, static_cast<char>('p' + axis.root));
    names.push_back(alone ? letter : format("{}{}", letter, digit));
  }
  return names;
}

/// `p0:B p1:4 | q:S`.
std::string domain_text(const Case& c) {
  const loop::Refinement& r = c.refined.refinement;
  std::string text;
  std::vector<std::string> names = names_of(r);
  for (size_t k = 0; k < r.axes.size(); ++k) {
    if (k > 0) text += r.axes[k].root == r.axes[k - 1].root ? " " : " | ";
    text += names[k] + ":" + c.refined.table.text(r.axes[k].extent, {.compact = true});
  }
  return text;
}

/// `x[p0 + 1] if -p1>=0 & p0>=0 , y[p1] ; z[p0]`.
std::string reads_text(const Case& c) {
  const PolyTable& t = c.refined.table;
  const loop::Refinement& r = c.refined.refinement;
  std::vector<std::string> names = names_of(r);
  std::string text;
  size_t at = 0;
  for (size_t count : c.counts) {
    std::string one;
    for (size_t end = at + count; at < end; ++at) {
      const loop::Access& access = r.accesses[at];
      if (access.never) continue;
      one += format("{}{}[{}]", one.empty() ? "" : " , ",
                    c.buffers[static_cast<size_t>(c.refined.chains[at].buffer)],
                    loop::index_text(t, access.index, names));
      for (size_t i = 0; i < access.mask.size(); ++i)
        one +=
            format("{}{}>=0", i == 0 ? " if " : " & ", loop::index_text(t, access.mask[i], names));
    }
    text += (text.empty() ? "" : " ; ") + (one.empty() ? "nothing" : one);
  }
  return text;
}

int64_t check_points(const GoldenCase& golden, Case& c) {
  int64_t points = 0;
  bool symbolic = golden.in.find_first_of("BSV") != std::string::npos;
  for (const auto& values : kValues) {
    std::vector<Binding> bindings;
    for (size_t s = 0; s < 3; ++s) bindings.push_back({kSymbols[s], values[s]});
    points += check_against_arithmetic(c.refined, bindings);
    if (!symbolic) break;
  }
  return points;
}

}  // namespace

TEST_CASE("the table of index cases") {
  std::string comments, updated;
  std::vector<GoldenCase> cases = read_cases(comments);
  CHECK(cases.size() == 83);
  int64_t points = 0;
  int residual_cases = 0;
  for (const GoldenCase& golden : cases) {
    INFO(golden.title);
    Case c;
    lower(golden, c);
    loop::Refinement& refinement = c.refined.refinement;
    CHECK(refinement.within_caps);
    std::string domain = domain_text(c);
    std::string results = format("  dom  {}\n  out  {}\n", domain, reads_text(c));
    if (refinement.residual > 0)
      results += format("  residual {} div/mod nodes\n", refinement.residual);
    residual_cases += refinement.residual > 0;
    points += check_points(golden, c);
    loop::coalesce(c.refined.table, refinement);
    if (domain_text(c) != domain)
      results += format("  merged {}\n  reads {}\n", domain_text(c), reads_text(c));
    points += check_points(golden, c);
    std::string roots = golden.root.empty() ? "" : format("  root {}\n", golden.root);
    updated += format("{}\n  in   {}\n{}{}", golden.title, golden.in, roots, results);
    if (!std::getenv("TENON_UPDATE_GOLDEN")) CHECK(results == golden.results);
  }
  CHECK(residual_cases <= 7);
  CHECK(points > 80000);
  if (std::getenv("TENON_UPDATE_GOLDEN")) std::ofstream(kFile) << comments << updated;
}
