// The index algebra against its table of cases, and every point of every case against a reference.
#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <map>

#include "base/error.h"
#include "loop/refine.h"
#include "reference_access.h"

using namespace tn;
using namespace tn::loop;

namespace {

const Dim kSymbols[] = {Dim::symbol("B", 1, 4096), Dim::symbol("S", 1, 4096),
                        Dim::symbol("V", 1, 4096)};
const int64_t kValues[][3] = {{1, 1, 1}, {2, 3, 5}, {5, 2, 1}, {3, 5, 2}, {1, 2, 3}, {2, 1, 2}};

struct GoldenCase {
  std::string title;
  std::map<std::string, std::string> lines;
};

std::vector<GoldenCase> read_cases() {
  std::ifstream file("tests/golden/index/cases.tn");
  REQUIRE(file.good());
  std::vector<GoldenCase> cases;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    if (line[0] != ' ') {
      cases.push_back({line, {}});
      continue;
    }
    size_t key_end = line.find(' ', 2);
    size_t value = line.find_first_not_of(' ', key_end);
    cases.back().lines[line.substr(2, key_end - 2)] = line.substr(value);
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

// [[0, 1], [2]], or everything in one root.
std::vector<std::vector<size_t>> read_roots(const GoldenCase& golden, size_t rank) {
  std::vector<std::vector<size_t>> roots;
  auto it = golden.lines.find("root");
  if (it == golden.lines.end()) {
    roots.emplace_back();
    for (size_t k = 0; k < rank; ++k) roots[0].push_back(k);
    return roots;
  }
  for (char c : it->second.substr(1)) {
    if (c == '[') roots.emplace_back();
    if (c >= '0' && c <= '9') roots.back().push_back(static_cast<size_t>(c - '0'));
  }
  return roots;
}

struct Lowered {
  PolyTable table;
  std::vector<std::string> buffers;
  std::vector<Access> accesses;
  std::vector<std::vector<size_t>> roots;
  Refinement refined;
};

void lower(const GoldenCase& golden, Lowered& out) {
  PolyTable& t = out.table;
  for (const std::string& text : split_text(golden.lines.at("in"), " || "))
    out.accesses.push_back(parse_access(t, text, kSymbols, out.buffers));
  const Indices shape = out.accesses[0].shape;
  out.roots = read_roots(golden, shape.size());
  Indices roots, index(shape.size());
  for (const auto& group : out.roots) {
    Indices dims;
    PolyId extent = 1;
    for (size_t axis : group) {
      dims.push_back(shape[axis]);
      extent = t.mul(extent, shape[axis]);
    }
    roots.push_back(root_axis(t, extent));
    Indices digits = coordinates(t, roots.back(), dims);
    for (size_t k = 0; k < group.size(); ++k) index[group[k]] = digits[k];
  }
  std::vector<Cases> accesses;
  for (const Access& access : out.accesses) {
    REQUIRE(access.shape.size() == shape.size());
    for (size_t k = 0; k < shape.size(); ++k) CHECK(access.shape[k] == shape[k]);
    auto cases = compose(t, access, index);
    REQUIRE(cases.has_value());
    accesses.push_back(*cases);
  }
  out.refined = refine(t, roots, std::move(accesses));
}

std::string out_text(const Lowered& lowered) {
  std::string text;
  std::vector<std::string> names = axis_names(lowered.refined);
  for (const Cases& cases : lowered.refined.accesses)
    text += (text.empty() ? "" : " ; ") + cases_text(lowered.table, cases, names, lowered.buffers);
  return text;
}

// Parses `x[p0 + 1] if -p1>=0 & p0>=0` with the axes of the refinement.
Case read_case(Lowered& lowered, const std::string& text) {
  std::vector<std::string> names = axis_names(lowered.refined);
  Indices extents;
  for (const LoopAxis& axis : lowered.refined.axes) extents.push_back(axis.extent);
  auto parse = [&](const std::string& s) {
    return parse_index(lowered.table, s, names, extents, kSymbols);
  };
  std::vector<std::string> parts = split_text(text, " if ");
  size_t open = parts[0].find('[');
  std::string name = parts[0].substr(0, open);
  auto it = std::find(lowered.buffers.begin(), lowered.buffers.end(), name);
  Case result{{},
              static_cast<int32_t>(it - lowered.buffers.begin()),
              parse(parts[0].substr(open + 1, parts[0].rfind(']') - open - 1))};
  if (parts.size() > 1)
    for (const std::string& mask : split_text(parts[1], " & "))
      result.mask.push_back(parse(mask.substr(0, mask.rfind(">="))));
  return result;
}

bool same_cases(Cases a, Cases b) {
  auto key = [](const Case& c) {
    Mask mask = c.mask;
    std::sort(mask.begin(), mask.end());
    return std::tuple(c.buffer, c.index, mask);
  };
  auto less = [&](const Case& x, const Case& y) { return key(x) < key(y); };
  std::sort(a.begin(), a.end(), less);
  std::sort(b.begin(), b.end(), less);
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](const Case& x, const Case& y) { return key(x) == key(y); });
}

// Compares `dom` and `out` (or their forms after coalescing) as polynomials.
void compare_with(const GoldenCase& golden, Lowered& lowered, const char* dom, const char* out) {
  CHECK(domain_text(lowered.table, lowered.refined) == golden.lines.at(dom));
  bool same = domain_text(lowered.table, lowered.refined) == golden.lines.at(dom);
  std::vector<std::string> expected = split_text(golden.lines.at(out), " ; ");
  same = same && expected.size() == lowered.refined.accesses.size();
  for (size_t i = 0; same && i < expected.size(); ++i) {
    Cases wanted;
    for (const std::string& text : split_text(expected[i], " , "))
      wanted.push_back(read_case(lowered, text));
    same = same_cases(wanted, lowered.refined.accesses[i]);
  }
  CHECK_MESSAGE(same, out_text(lowered));
}

bool mentions(const GoldenCase& golden, char symbol) {
  const std::string& in = golden.lines.at("in");
  return in.find(symbol) != std::string::npos;
}

int64_t check_points(const GoldenCase& golden, Lowered& lowered) {
  int64_t points = 0;
  for (const auto& values : kValues) {
    bool duplicate = false;  // values of symbols that do not occur change nothing
    for (int s = 0; s < 3; ++s)
      if (!mentions(golden, "BSV"[s]) && values[s] != 1) duplicate = true;
    bool any = mentions(golden, 'B') || mentions(golden, 'S') || mentions(golden, 'V');
    if (duplicate && !any) continue;
    std::vector<Binding> bindings;
    for (size_t s = 0; s < 3; ++s) bindings.push_back({kSymbols[s], values[s]});
    points += check_against_reference(lowered.table, lowered.refined, lowered.accesses,
                                      lowered.roots, bindings);
  }
  return points;
}

}  // namespace

TEST_CASE("the table of index cases") {
  std::vector<GoldenCase> cases = read_cases();
  CHECK(cases.size() == 84);
  int64_t points = 0;
  int residual_cases = 0;
  for (const GoldenCase& golden : cases) {
    INFO(golden.title);
    Lowered lowered;
    lower(golden, lowered);
    compare_with(golden, lowered, "dom", "out");
    CHECK(lowered.refined.within_caps);
    auto residual = golden.lines.find("residual");
    int wanted = residual == golden.lines.end() ? 0 : std::stoi(residual->second);
    CHECK(lowered.refined.residual == wanted);
    residual_cases += lowered.refined.residual > 0;
    points += check_points(golden, lowered);
    std::string before = domain_text(lowered.table, lowered.refined);
    coalesce(lowered.table, lowered.refined);
    if (golden.lines.count("merged") > 0) {
      compare_with(golden, lowered, "merged", "reads");
    } else {
      CHECK_MESSAGE(domain_text(lowered.table, lowered.refined) == before, out_text(lowered));
    }
    points += check_points(golden, lowered);
  }
  CHECK(residual_cases <= 7);
  CHECK(points > 80000);
}
