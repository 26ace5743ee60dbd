// A server: several threads answer requests from a queue with one executable from a file.
//
//     serve [THREADS] [REQUESTS]
//
// A thread takes all requests that wait, up to 16, and answers them with one call. The executable
// is compiled for any batch up to this size, so that no request waits for the compiler.
#include <tenon/nn.h>
#include <tenon/tenon.h>

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <future>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace nn = tn::nn;

constexpr int64_t kFeatures = 8, kClasses = 3, kMaxBatch = 16;

/// Compiles a network and writes it to a file: usually another program does this, or Python.
void save_network(const std::string& path) {
  nn::Sequential network{nn::Linear(kFeatures, 64), tn::gelu, nn::Linear(64, kClasses)};
  auto classify = [&](const tn::Tensor& x) { return tn::softmax(network(x), -1); };
  tn::AheadSettings settings{.name = "classify"};
  settings.plan.optimize_for = "throughput";  // a call stays on the thread that makes it
  tn::compile_ahead(
      classify, {{.shape = {{1, kMaxBatch, kMaxBatch, "batch"}, kFeatures}, .name = "x"}}, settings)
      .save(path);
}

struct Request {
  std::vector<float> features;
  std::promise<std::vector<float>> answer;
};
using Answer = std::future<std::vector<float>>;

class Queue {
 public:
  Answer ask(std::vector<float> features) {
    if (features.size() != kFeatures)
      throw std::invalid_argument("a request has 8 features, not " +
                                  std::to_string(features.size()));
    Request request{std::move(features), {}};
    Answer answer = request.answer.get_future();
    std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(request));
    changed_.notify_one();
    return answer;
  }
  /// Waits for requests; none after `close`.
  std::vector<Request> take(size_t most) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return closed_ || !waiting_.empty(); });
    std::vector<Request> taken;
    while (!waiting_.empty() && taken.size() < most) {
      taken.push_back(std::move(waiting_.front()));
      waiting_.pop_front();
    }
    return taken;
  }
  void close() {
    std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Request> waiting_;
  bool closed_ = false;
};

using Classifier = tn::ExecutableOf<tn::Tensor(tn::Tensor)>;

void serve(const Classifier& classify, Queue& queue) {
  for (;;) {
    std::vector<Request> batch = queue.take(kMaxBatch);
    if (batch.empty()) return;
    std::vector<float> features;
    for (const Request& request : batch)
      features.insert(features.end(), request.features.begin(), request.features.end());
    try {
      int64_t size = static_cast<int64_t>(batch.size());
      tn::Tensor scores = classify(tn::array(features, {size, kFeatures}));
      for (int64_t i = 0; i < size; ++i)
        batch[static_cast<size_t>(i)].answer.set_value(scores[i].to_vector<float>());
    } catch (...) {  // the caller gets the error, and the server goes on
      for (Request& request : batch) request.answer.set_exception(std::current_exception());
    }
  }
}

int main(int argc, char** argv) {
  int threads = argc > 1 ? std::atoi(argv[1]) : 4, requests = argc > 2 ? std::atoi(argv[2]) : 1000;
  tn::random::seed(0);
  save_network("network.tnx");
  auto classify = tn::Executable::load<tn::Tensor(tn::Tensor)>("network.tnx");

  Queue queue;
  std::vector<std::thread> pool;
  for (int i = 0; i < threads; ++i) pool.emplace_back([&] { serve(classify, queue); });

  std::vector<Answer> answers;
  tn::Tensor data = tn::random::normal({requests, kFeatures});
  for (const tn::Tensor& row : data) answers.push_back(queue.ask(row.to_vector<float>()));
  std::vector<float> served;
  for (Answer& answer : answers)
    for (float score : answer.get()) served.push_back(score);
  queue.close();
  for (std::thread& thread : pool) thread.join();
  std::printf("%d requests on %d threads in %d calls\n", requests, threads,
              static_cast<int>(classify.stats().calls));

  // Whatever batch a request was answered in, the answer has the bits of a call of its own.
  std::vector<float> alone;
  for (int i = 0; i < requests; ++i)
    for (float score : classify(data[{tn::slice(i, i + 1)}]).to_vector<float>())
      alone.push_back(score);
  std::printf("the bits of calls of their own: %s\n", served == alone ? "yes" : "no");
  try {
    queue.ask({1, 2, 3});
  } catch (const std::invalid_argument& error) {
    std::printf("%s\n", error.what());
  }
  return served == alone ? 0 : 1;
}
