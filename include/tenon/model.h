#pragma once
// Logical models: blocks, their names and connections. Compiling a model adds sizes, types and a
// backend.
//
//     tn::model::Model m;
//     m |= Linear(64)({{"input", "x"}, {"output", "h"}});
//     m += op_block("relu");
//     m += Linear(10);
#include <map>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tenon/callback.h"
#include "tenon/tensor.h"

namespace tn::model {

/// Inputs are data, parameters are trained, states are read and written by every evaluation in
/// training.
enum class Role : uint8_t { input, parameter, state, output };
std::string_view to_text(Role role);

/// The arguments of an initializer of a parameter or a state.
struct InitialCall {
  const Shape& shape;
  DType type;
  const Tensor& key;
  /// Shapes of all terminals except outputs: the bias depends on the shape of the weight.
  const std::vector<Shape>& block;
};
using Initializer = Callback<Tensor(const InitialCall& call)>;

/// An input or output of a block.
///
/// Shapes are written as sizes: numbers, names (one size in all terminals of the block), "_" (any
/// size) and at most once "..." (any axes, the same in all terminals of the block). "*" is any
/// shape at all.
struct Terminal {
  std::string name;
  Role role = Role::input;
  std::string shape = "*";
  std::optional<DType> type = {};
  Initializer initial = {};         // of parameters and states
  bool optional = false;            // of inputs: absent where nothing is connected
  std::optional<DType> usual = {};  // of inputs of whose type nothing is said
};

/// A size of a block that is a multiple of another one: `whole` = `times` * `part`.
struct Multiple {
  std::string whole;
  int64_t times;
  std::string part;
};

/// When a block draws random numbers: `without_key`, where nothing is connected to its "key".
enum class Draws : uint8_t { never, in_training, without_key };

/// The arguments of a block's computation.
struct BlockCall {
  const Tensors& in;  // by terminal, without outputs; null: left out
  bool training = false;
  Tensor key = {};  // null where nothing is drawn
};

/// A primitive block, which contains no other blocks.
struct BlockDef {
  std::string kind;                           // "Linear"
  std::vector<Terminal> terminals;            // inputs, parameters, states; then outputs
  std::map<std::string, int64_t> sizes = {};  // names in shapes that are known
  std::vector<Multiple> multiples = {};
  std::string settings = {};  // for readers: "kernel_size=3"
  Draws draws = Draws::never;
  bool same_type = false;  // floating inputs, parameters and outputs are of one type
  /// Returns the outputs, then the new values of the states.
  Callback<Tensors(const BlockCall& call)> compute = {};
};

/// A connection with its name and properties.
struct IOKey {
  std::string name = {};
  std::optional<std::string> shape = {};  // as of terminals; names are one size in the whole model
  std::optional<DType> type = {};
  Tensor value = {};                // a constant; null: none
  std::optional<bool> expose = {};  // an output of the model; left out: if no block reads it

  IOKey() = default;
  IOKey(const char* given) : name(given) {}
  IOKey(std::string given) : name(std::move(given)) {}
};

/// By terminal.
using Connections = std::vector<std::pair<std::string, IOKey>>;

struct ModelDef;
class Model;
struct Connected;

/// A part of models: a block, or a snapshot of a model.
class Block {
 public:
  Block(BlockDef def);
  Block(const Model& model);

  /// The block with some terminals connected, and a name of its own in the model it is put into.
  Connected operator()(Connections connections, std::string name = {},
                       std::source_location at = std::source_location::current()) const;

  using Def = std::variant<std::shared_ptr<const BlockDef>, std::shared_ptr<const ModelDef>>;
  const Def& def() const { return def_; }
  /// "Linear"; of a model, its name.
  std::string kind() const;
  /// "Linear(in=3, out=8)"
  std::string called() const;
  std::vector<Terminal> terminals() const;

 private:
  Def def_;
};

struct Connected {
  Block block;
  Connections connections = {};
  std::string name = {};
  std::source_location place;

  Connected(Block part, Connections given = {}, std::string own_name = {},
            std::source_location at = std::source_location::current())
      : block(std::move(part)),
        connections(std::move(given)),
        name(std::move(own_name)),
        place(at) {}
};

class Model {
 public:
  explicit Model(std::string name = "model");

  /// Adds a block. A new name creates a connection; an existing connection is read, or written if
  /// it has no writer yet.
  Model& operator|=(const Connected& block);
  /// The same; the first input that is not connected reads the last output.
  Model& operator+=(const Connected& block);
  /// The model as a block of another one.
  Connected operator()(Connections connections, std::string name = {},
                       std::source_location at = std::source_location::current()) const;
  /// Merges connections under the first name. At most one of them may have a writer.
  Model& merge(const std::vector<std::string>& names);
  /// Freezes the current inputs and outputs under their names.
  Model& keep_ends();
  /// Adds properties of a connection.
  Model& describe(const IOKey& key);

  const std::string& name() const;
  /// The open and exposed connections, in order, with names.
  std::vector<Terminal> terminals() const;
  std::vector<std::string> keys(Role role) const;
  /// The number of a connection by name or path ("linear.output"); stable if the name changes.
  int find(const std::string& name) const;
  const std::string& connection(int number) const;
  /// The same, or what it is called as an end of the model: "output".
  std::string key(int number) const;
  /// The name of the latest block.
  const std::string& last_block() const;
  /// The blocks with their connections, one per line.
  std::string to_text() const;

  const std::shared_ptr<ModelDef>& def() const { return def_; }

 private:
  Model& add(const Connected& block, bool chained);
  ModelDef& own();  // a copy if a block shares it

  std::shared_ptr<ModelDef> def_;
};

}  // namespace tn::model
