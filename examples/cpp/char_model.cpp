// Trains a GPT-style character model on text files, and lets it write.
//
//     char_model [STEPS] [FILE]
//
// Without a file it learns the text below.
#include <tenon/nn.h>
#include <tenon/optim.h>
#include <tenon/tenon.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

namespace nn = tn::nn;
namespace optim = tn::optim;

// Characters of an example, examples of a step, and numbers that stand for a character.
constexpr int64_t kLength = 48, kBatch = 12, kDims = 64;

const char* const kText =
    R"(A tensor is a lazy array. An op on tensors records a node, and returns another tensor. A
value is computed when the program reads it. Then the nodes behind it become a graph,
the graph becomes a plan, and the plan runs. A plan is cached, so that the next step of
a loop finds it. A function that is compiled is recorded once. A gradient is a function,
too: it records the nodes of a function, and walks them from the result back to the
arguments. A batch is a function with one more axis.
)";

/// Characters as numbers.
struct Text {
  std::string letters;
  tn::Tensor numbers;

  explicit Text(const std::string& text) {
    std::set<char> different(text.begin(), text.end());
    letters.assign(different.begin(), different.end());
    numbers = tn::array(encoded(text));
  }
  std::vector<int64_t> encoded(const std::string& text) const {
    std::vector<int64_t> all;
    for (char letter : text) all.push_back(static_cast<int64_t>(letters.find(letter)));
    return all;
  }
  /// The examples of a step: characters, and the characters that follow them.
  std::pair<tn::Tensor, tn::Tensor> batch(int64_t step) const {
    int64_t last = numbers.dim(0) - kLength;
    tn::Tensor starts = tn::random::randint({kBatch, 1}, 0, last, tn::int64, tn::random::key(step));
    tn::Tensor drawn = tn::take(numbers, starts + tn::arange(kLength + 1));
    return {drawn[{tn::all, tn::slice(0, -1)}], drawn[{tn::all, tn::slice(1, tn::none)}]};
  }
};

struct Block : nn::Module<Block> {
  nn::LayerNorm attention_norm{kDims}, norm{kDims};
  nn::MultiHeadAttention attention{kDims, 4};
  nn::Linear up{kDims, 4 * kDims}, down{4 * kDims, kDims};

  tn::Tensor forward(tn::Tensor x) const {
    x = x + attention(attention_norm(x), {.causal = true});
    return x + down(tn::gelu(up(norm(x))));
  }
  static void fields(auto& m, auto&& f) {
    f("attention_norm", m.attention_norm), f("attention", m.attention);
    f("norm", m.norm), f("up", m.up), f("down", m.down);
  }
};

struct CharGPT : nn::Module<CharGPT> {
  nn::Embedding embedding;
  tn::Tensor positions = tn::random::normal({kLength, kDims}, 0, 0.02);
  std::vector<Block> blocks{Block(), Block()};
  nn::LayerNorm norm{kDims};
  explicit CharGPT(size_t letters) : embedding(static_cast<int64_t>(letters), kDims) {
    embedding.weight = 0.02 * embedding.weight;
  }

  tn::Tensor forward(const tn::Tensor& tokens) const {
    tn::Tensor x = embedding(tokens) + positions[{tn::slice(0, tokens.shape()[1])}];
    for (const Block& block : blocks) x = block(x);
    return embedding.as_linear(norm(x));  // one matrix, used twice
  }
  static void fields(auto& m, auto&& f) {
    f("embedding", m.embedding), f("positions", m.positions);
    f("blocks", m.blocks), f("norm", m.norm);
  }
};

/// A linear warm-up in a tenth of the steps, then a cosine.
optim::Schedule warm_up_and_decay(double peak, int steps) {
  int warm_up = 1 + steps / 10;
  return optim::join_schedules({optim::linear_schedule(peak / warm_up, peak, warm_up),
                                optim::cosine_decay(peak, std::max(1, steps - warm_up))},
                               {warm_up});
}

CharGPT train(const Text& text, int steps) {
  CharGPT model(text.letters.size());
  optim::AdamW optimizer(warm_up_and_decay(8e-3, steps), {.weight_decay = 0.1});
  optimizer.init(model.trainable_parameters());
  auto loss_and_grad = nn::value_and_grad(model, [&](const tn::Tensor& x, const tn::Tensor& y) {
    return tn::cross_entropy(model(x), y);
  });
  auto step = tn::compile(  // one plan: forward, backward, clipping and AdamW
      [&](const tn::Tensor& x, const tn::Tensor& y) {
        auto [loss, gradients] = loss_and_grad(x, y);
        optimizer.update(model, optim::clip_grad_norm(gradients, 1.0).gradients);
        return loss;
      },
      std::tie(model, optimizer));
  for (int i = 0; i < steps; ++i) {
    auto [tokens, following] = text.batch(i);
    double loss = step(tokens, following).item<double>();
    if (i % (steps / 5 + 1) == 0 || i == steps - 1) std::printf("step %4d  loss %.3f\n", i, loss);
  }
  return model;
}

/// `start`, continued by the model.
std::string sample(const CharGPT& model, const Text& text, std::string start, int count) {
  auto logits_of = tn::compile([&](const tn::Tensor& tokens) { return model(tokens); });
  for (int i = 0; i < count; ++i) {
    size_t seen = std::min(start.size(), static_cast<size_t>(kLength));
    std::vector<int64_t> tokens = text.encoded(start.substr(start.size() - seen));
    tn::Tensor logits = logits_of(tn::array(tokens, {1, static_cast<int64_t>(seen)}))[{0, -1}];
    tn::Tensor next = tn::random::categorical(logits / 0.7, -1, {}, tn::random::key(i));
    start += text.letters[next.item<size_t>()];
  }
  return start;
}

int main(int argc, char** argv) {
  tn::random::seed(0);
  int steps = argc > 1 ? std::atoi(argv[1]) : 300;
  std::string all = kText;
  if (argc > 2) {
    std::ifstream file(argv[2]);
    all.assign(std::istreambuf_iterator<char>(file), {});
  }
  Text text(all);
  std::printf("%zu characters, %zu different ones\n", all.size(), text.letters.size());
  CharGPT model = train(text, steps);
  model.save_weights("char_model.safetensors");
  std::printf("%s\n", sample(model, text, all.substr(0, 8), 80).c_str());
}
