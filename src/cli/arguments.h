#pragma once
// Arguments for an executable, from files, numbers and the generator of random ones.
#include <CLI/CLI.hpp>
#include <map>

#include "tenon/executable.h"

namespace tn {

struct ArgumentOptions {
  std::vector<std::string> inputs;  // "x=x.npy", "n=16"
  bool random = false;              // those that are not given
  bool cast = false;                // given ones to the type that is wanted
  uint64_t seed = 0;

  void add_to(CLI::App& command);
};

/// Sizes by name ("batch") or by place ("x.0", "n").
using ChosenSizes = std::map<std::string, int64_t>;

struct Arguments {
  Tensors tensors;
  std::vector<int64_t> sizes;
};

/// Fails when an input is missing, or one is given that does not exist. What is random has the
/// `chosen` sizes, those of given inputs where they have the same name, and `opt` otherwise.
Arguments make_arguments(const std::vector<InputInfo>& inputs, const ArgumentOptions& options,
                         const ChosenSizes& chosen = {});

}  // namespace tn
