#pragma once
// Flattening: a model of models as one list of blocks in the order in which they can be computed,
// and terminal resolution: one list of connections between them, with names that are unique.
#include "model/model_def.h"

namespace tn::model {

struct FlatWire {
  std::string name;  // "encoder.linear_1.weight"
  Role role;         // of those without a writer; otherwise Role::output
  std::vector<Said<std::string>> shapes = {};
  std::vector<Said<DType>> types = {};
  Tensor value = {};
  int drawn_by = -1;         // the block whose terminal says how its first value is drawn
  int writer = -1;           // a block
  std::vector<int> readers;  // blocks
  Loc loc = {};
};

struct FlatBlock {
  std::string path;  // "encoder.linear_1"
  std::shared_ptr<const BlockDef> def;
  std::vector<int> in, out;  // wires, by terminal; -1: absent
  Loc loc = {};

  /// Whether it takes a random key.
  bool draws(bool training) const;
  /// "Linear 'encoder.linear_1'"
  std::string described() const;
};

struct FlatModel {
  std::string name;
  Indexed<FlatWire> wires;
  Indexed<FlatBlock> blocks;       // those that write a wire come before those that read it
  std::vector<int> open, outputs;  // wires: inputs in the order of the model; outputs
  std::vector<int> states;         // those that blocks write anew

  /// The wire of this name; -1 where there is none.
  int find(std::string_view name) const;
  std::vector<std::string> names() const;
};

/// Fails for a model without blocks and for one that depends on itself.
FlatModel flatten(const Model& model);

/// Every block with what it reads and writes; every connection with what is said about it.
std::string blocks_text(const FlatModel& model);
std::string terminals_text(const FlatModel& model);

}  // namespace tn::model
