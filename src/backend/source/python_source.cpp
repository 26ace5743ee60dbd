#include "backend/source/python_source.h"

#include <algorithm>

#include "backend/source/embedded_text.h"
#include "backend/source/python_function.h"
#include "backend/source/python_prelude.h"
#include "backend/source/python_scalars.h"
#include "base/error.h"

namespace tn::source {
namespace {

/// Whether `word` stands in `text` with nothing of a name before it.
bool mentions(std::string_view text, std::string_view word) {
  for (size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) {
    bool inside = at > 0 && (std::isalnum(static_cast<unsigned char>(text[at - 1])) ||
                             text[at - 1] == '_' || text[at - 1] == '.');
    if (!inside) return true;
  }
  return false;
}

bool has_wide_types(const Graph& graph) {
  return std::any_of(graph.types.begin(), graph.types.end(), [](TypeRef type) {
    DType t = type->dtype;
    return t == DType::i64 || t == DType::u64 || t == DType::f64 || t == DType::c128;
  });
}

std::string imports(std::string_view target, std::string_view text, bool constants, bool wide) {
  std::string made;
  if (mentions(text, "itertools.")) made += "import itertools\n";
  if (constants) made += "import json\n";
  if (mentions(text, "math.")) made += "import math\n";
  if (constants) made += "from pathlib import Path\n";
  if (!made.empty()) made += "\n";
  if (target == "jax") made += "import jax\nimport jax.numpy as jnp\n";
  if (target == "numpy" || constants) made += "import numpy as np\n";
  if (target == "torch") made += "import torch\n";
  if (target == "torch" && mentions(text, "F.")) made += "import torch.nn.functional as F\n";
  if (target == "jax" && mentions(text, "lax.")) made += "from jax import lax\n";
  if (target == "jax" && wide)
    made += "\njax.config.update(\"jax_enable_x64\", True)  # it has types of 64 bits\n";
  return made;
}

std::string reader(std::string_view target, const std::string& file) {
  std::string_view whole = embedded_text("constants_reader.py");
  std::string text(whole.substr(whole.find("def ")));
  auto put = [&](std::string_view key, std::string_view value) {
    text.replace(text.find(key), key.size(), value);
  };
  put("{convert}", target == "numpy" ? "" : target == "torch" ? "torch.tensor" : "jnp.asarray");
  put("{file}", format("{:?}", file));
  return text;
}

}  // namespace

std::vector<std::string> source_targets() { return {"numpy", "torch", "jax"}; }

std::string python_source(std::span<const Function> functions, std::string_view target,
                          const Constants& constants) {
  std::vector<std::string> known = source_targets();
  invariant(std::ranges::count(known, target) == 1, "python source: no target '{}'", target);
  std::string body;
  bool wide = false;
  for (const Function& f : functions) {
    PythonScope scope{target};
    Function named = f;
    named.name = scope.names.fresh(identifier(f.name));
    FunctionWriter writer(named, scope, constants, 0);
    std::vector<std::string> lines = writer.write();
    body += format("\n\n{}{}\n", target == "numpy" ? "@np.errstate(all=\"ignore\")\n" : "",
                   join(lines, "\n"));
    wide |= has_wide_types(writer.graph());
  }
  bool reads = !constants.file.empty();
  std::string helpers = helpers_for(target, body);
  std::string_view name = target == "numpy" ? "NumPy" : target == "torch" ? "PyTorch" : "JAX";
  std::string text = format(
      "# Written by Tenon from the graph of the computation. It needs {} and nothing else.\n"
      "# Comments behind statements are the types of their values.\n",
      target == "numpy" ? "NumPy 2" : name);
  text += imports(target, helpers + body, reads, wide);
  if (reads) text += "\n\n" + reader(target, constants.file);
  if (!helpers.empty()) text += "\n" + helpers;
  return text + body;
}

}  // namespace tn::source
