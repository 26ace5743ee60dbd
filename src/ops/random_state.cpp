// The key of each thread.
#include "ops/random_state.h"

#include <cstring>
#include <random>
#include <utility>

#include "base/error.h"
#include "ir/node.h"
#include "ir/place.h"
#include "ir/trace.h"
#include "ops/draws.h"
#include "ops/threefry.h"
#include "runtime/device.h"
#include "tenon/random.h"

namespace tn::ops {
static void fail_frozen_key() {
  fail(Hint{"call eval() on the model, name it as state: tn::compile(f, std::tie(model)), or pass "
            "a key to the draw"},
       "random: drawn without a key while compiling, so that every call would give the same "
       "numbers");
}

void (*on_frozen_key)() = fail_frozen_key;
}  // namespace tn::ops

namespace tn::random {

namespace {

/// In the memory of the host, where the next one is computed.
Tensor make_key(ops::Words<uint32_t> words) {
  uint32_t both[] = {words.a, words.b};
  return from_bytes(both, DType::u32, {2});
}

Tensor key_from_system() {
  std::random_device source;
  return make_key({source(), source()});
}

/// Whether the user has set the state of this thread.
thread_local bool is_chosen = false;

Tensor& state_of_thread() {
  thread_local Tensor key = key_from_system();
  return key;
}

/// Whether a draw from `key` is made once and for all calls of a function that is being compiled.
/// A key that is a parameter of one, or computed from it, is another in every call.
bool is_frozen(const Tensor& key) { return !key.node()->traced && Trace::compiling(); }

}  // namespace

void seed(uint64_t number) {
  auto high = static_cast<uint32_t>(number >> 32), low = static_cast<uint32_t>(number);
  state_of_thread() = make_key({high, low});
  is_chosen = true;
}

Tensor state() { return state_of_thread(); }

void set_state(const Tensor& key) {
  ops::check_one_key("random.state", key);
  state_of_thread() = key.to(Device());
  is_chosen = true;
}

}  // namespace tn::random

namespace tn::ops {

void agree_on_state(FunctionRef<void(std::span<uint32_t, 2>)> take_of_first) {
  Tensor& key = random::state_of_thread();
  if (key.node()->traced) return;
  uint32_t words[2];
  key.eval();
  std::memcpy(words, key.data<uint32_t>(), sizeof words);
  take_of_first(words);
  if (!random::is_chosen) key = random::make_key({words[0], words[1]});
}

Tensor exchange_state(Tensor key) {
  return std::exchange(random::state_of_thread(), std::move(key));
}

Tensor take_key() {
  Tensor& key = random::state_of_thread();
  if (key.is_evaluated()) {  // a few operations here instead of an ever longer graph
    const auto* words = key.data<uint32_t>();
    Words<uint32_t> old{words[0], words[1]};
    key = random::make_key(threefry<uint32_t>(old, {0, 0}));
    return random::make_key(threefry<uint32_t>(old, {0, 1})).to(current_device());
  }
  Tensors both = tn::unstack(tn::random_split(key, {2}));
  key = both[0];
  return both[1].to(current_device());
}

}  // namespace tn::ops

namespace tn::random {

Tensor next_key(std::source_location at) {
  LocScope scope(at);
  if (is_frozen(state_of_thread())) ops::on_frozen_key();
  return ops::take_key();
}

}  // namespace tn::random
