// Trains a convolutional network to read handwritten digits, saves it, and serves it.
//
//     digits [FILE] [EPOCHS]
//
// A line of FILE is a digit of 8 x 8 pixels: 64 numbers from 0 to 16, then the label, separated by
// commas. This is the format of "optdigits" in the UCI repository, and of the digits.csv.gz inside
// scikit-learn. Without FILE, or with "-", the program draws digits itself.
#include <tenon/nn.h>
#include <tenon/optim.h>
#include <tenon/tenon.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace nn = tn::nn;
namespace optim = tn::optim;

/// Images in [0, 1], float32[n, 1, 8, 8], and their labels.
struct Digits {
  tn::Tensor images, labels;
  int64_t size() const { return labels.dim(0); }
};

Digits read_digits(const char* path) {
  std::ifstream file(path);
  std::vector<float> numbers;
  for (float number = 0; file >> number; file.get()) numbers.push_back(number);
  if (numbers.empty() || numbers.size() % 65 != 0)
    throw std::runtime_error(std::string(path) + ": expected lines of 65 numbers");
  tn::Tensor table = tn::array(numbers, {static_cast<int64_t>(numbers.size()) / 65, 65});
  tn::Tensor pixels = table[{tn::all, tn::slice(0, 64)}] / 16;
  return {tn::reshape(pixels, {-1, 1, 8, 8}), tn::astype(table[{tn::all, 64}], tn::int64)};
}

/// Digits of a pocket calculator, with a shaky hand: seven strokes between six corners.
Digits draw_digits(int64_t count) {
  tn::Tensor corners =
      tn::array({{2.F, 1.F}, {5.F, 1.F}, {2.F, 3.5F}, {5.F, 3.5F}, {2.F, 6.F}, {5.F, 6.F}});
  tn::Tensor begins = tn::array({0, 1, 3, 4, 2, 0, 2}), ends = tn::array({1, 3, 5, 5, 4, 2, 3});
  tn::Tensor strokes = tn::array({63, 6, 91, 79, 102, 109, 125, 7, 127, 111});  // one bit a stroke
  tn::Tensor labels = tn::arange(count) % 10, bit = tn::arange(7);
  corners = corners + tn::random::normal({count, 6, 2}, 0, 0.15) +
            tn::random::normal({count, 1, 2}, 0, 0.5);

  // The distance of each pixel from each stroke: [count, pixels, strokes].
  tn::Tensor start = tn::expand_dims(tn::take(corners, begins, 1), 1);
  tn::Tensor along = tn::expand_dims(tn::take(corners, ends, 1), 1) - start;
  tn::Tensor number = tn::arange(64);
  tn::Tensor pixels =
      tn::reshape(tn::stack({number % 8, tn::floor_divide(number, 8)}, -1), {64, 1, 2});
  tn::Tensor away = pixels - start;
  tn::Tensor share = tn::sum(away * along, -1) / tn::sum(along * along, -1);
  away = away - tn::expand_dims(tn::clip(share, 0, 1), -1) * along;
  tn::Tensor ink = tn::clip(1.5 - 1.2 * tn::sqrt(tn::sum(away * away, -1)), 0, 1);

  tn::Tensor drawn = (tn::expand_dims(tn::take(strokes, labels), 1) >> bit) & 1;
  tn::Tensor images = tn::max(ink * tn::expand_dims(drawn, 1), -1);
  return {tn::reshape(images, {count, 1, 8, 8}), labels};
}

/// The digits in a random order: some to train with, and a fifth to test with.
std::pair<Digits, Digits> split(const Digits& all) {
  tn::Tensor order = tn::random::permutation(tn::arange(all.size()));
  int64_t tests = all.size() / 5;
  auto chosen = [&](const tn::Tensor& rows) {
    return Digits{tn::take(all.images, rows, 0), tn::take(all.labels, rows, 0)};
  };
  return {chosen(order[{tn::slice(tests, tn::none)}]), chosen(order[{tn::slice(0, tests)}])};
}

void show(const tn::Tensor& image) {
  for (const tn::Tensor& row : image) {
    for (float ink : row.to_vector<float>())
      std::putchar(" .:*#"[static_cast<int>(ink * 4 + 0.5F)]);
    std::putchar('\n');
  }
}

void run(int argc, char** argv) {
  tn::random::seed(1);
  bool has_file = argc > 1 && std::string(argv[1]) != "-";
  auto [train, test] = split(has_file ? read_digits(argv[1]) : draw_digits(2000));
  int epochs = argc > 2 ? std::atoi(argv[2]) : 10;

  nn::Sequential model{nn::Conv2d(1, 32, 3, {.padding = 1}),
                       tn::relu,
                       nn::Conv2d(32, 64, 3, {.stride = 2, .padding = 1}),
                       tn::relu,
                       nn::Flatten(),
                       nn::Dropout(0.3),
                       nn::Linear(64 * 4 * 4, 10)};
  optim::AdamW optimizer{model.parameters(), {.learning_rate = 3e-3}};
  auto step = tn::compile(  // one plan: forward, backward, new parameters in place of the old
      [&](const tn::Tensor& x, const tn::Tensor& y) {
        tn::Tensor loss = nn::cross_entropy(model(x), y);
        loss.backward();
        optimizer.step();
        optimizer.zero_grad();
        return loss;
      },
      std::tie(model, optimizer));
  auto accuracy = [&](const Digits& digits) {
    return tn::mean(tn::argmax(model(digits.images), -1) == digits.labels).item<double>();
  };

  for (int epoch = 1; epoch <= epochs; ++epoch) {
    model.train();
    tn::Tensor total(0.0);
    auto batches = tn::data::batches(train.images, train.labels, 64,
                                     {.key = tn::random::key(epoch), .drop_last = true});
    for (auto [x, y] : tn::progress(batches, "epoch " + std::to_string(epoch)))
      total = total + step(x, y);
    model.eval();
    std::printf("epoch %d  loss %.3f  accuracy %.1f %%\n", epoch,
                total.item<double>() / static_cast<double>(batches.size()), 100 * accuracy(test));
  }
  model.save_weights("digits.safetensors");  // to train on, also in Python

  // A file that runs without this program, for batches of 1 to 1024 images.
  auto classify = [&](const tn::Tensor& images) { return tn::softmax(model(images), -1); };
  tn::compile_ahead(classify, {{.shape = {{1, 64, 1024, "images"}, 1, 8, 8}, .name = "images"}})
      .save("digits.tnx");

  auto served = tn::Executable::load<tn::Tensor(tn::Tensor)>("digits.tnx");
  for (int i = 0; i < 2; ++i) {
    tn::Tensor image = test.images[{tn::slice(i, i + 1)}], p = served(image)[0];
    show(image[{0, 0}]);
    std::printf("read as %d with %.0f %%, is %d\n", tn::argmax(p).item<int>(),
                100 * tn::max(p).item<double>(), test.labels[i].item<int>());
  }
}

int main(int argc, char** argv) {
  try {
    run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "digits: %s\n", error.what());
    return 1;
  }
}
