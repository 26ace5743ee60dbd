#pragma once
// What a logical model is made of.
#include "base/indexed.h"
#include "ir/place.h"
#include "tenon/model.h"

namespace tn::model {

/// A constraint on a connection, and what declared it.
template <class T>
struct Said {
  T what;
  std::string by;  // "Conv2d 'conv2d'", "shapes", "IOKey 'h'"
};

/// A connection of a model: at most one terminal writes it, and others read it.
struct Wire {
  std::string name;    // unique in the model
  bool named = false;  // by the user
  std::vector<Said<std::string>> shapes = {};
  std::vector<Said<DType>> types = {};
  Tensor value = {};
  std::optional<bool> expose = {};
  int writer = -1;  // a part
  int readers = 0;
  int merged = -1;  // into another wire
  Loc loc = {};
};

struct Part {
  std::string name;  // unique in the model
  Block block;
  std::vector<Terminal> terminals;  // of the block
  std::vector<int> wires;           // by terminal; -1: absent
  Loc loc = {};
};

struct ModelDef {
  std::string name;
  Indexed<Wire> wires;
  Indexed<Part> parts;
  std::map<std::string, int, std::less<>> by_name;     // wires, those of users and "linear.output"
  std::map<std::string, int, std::less<>> part_names;  // how often a name was wanted
  int last_output = -1;                                // a wire
  int depth = 1;                                       // of models in models

  /// The wire that `w` was merged into.
  int root(int w) const {
    while (wires[w].merged >= 0) w = wires[w].merged;
    return w;
  }
  const Wire& wire(int w) const { return wires[root(w)]; }
  Wire& wire(int w) { return wires[root(w)]; }

  /// Wires that are open or exposed, in the order of the terminals that first touch them, as
  /// terminals of the model.
  struct End {
    Terminal terminal;
    int wire;
  };
  std::vector<End> ends() const;
};

/// "Conv2d 'conv2d_1'"
std::string described(const Part& part);

}  // namespace tn::model
