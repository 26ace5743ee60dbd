#include "compiler/worker_steps.h"

#include <algorithm>
#include <deque>
#include <numeric>
#include <set>

#include "base/text.h"
#include "compiler/step_order.h"
#include "ir/type.h"
#include "plan/split_form.h"
#include "runtime/memory_use.h"
#include "runtime/transport.h"

namespace tn {
namespace {

/// A bucket of so many bytes is started: more would save little, and start later.
constexpr int64_t kBucketBytes = int64_t{1} << 20;
constexpr size_t kMostJoined = 64;
/// What steps make that run before one that waits for a sum, in bytes.
constexpr int64_t kMostAhead = int64_t{64} << 20;

/// Null: the step has no form in two steps.
const SplitForm* form_of(const Step& step) {
  const LibraryStep* call = step.library();
  return call && split_form ? split_form(*call->op) : nullptr;
}
/// Null: the step is no collective that can be split.
const LibraryStep* splittable(const Step& step) {
  const SplitForm* form = form_of(step);
  const LibraryStep* call = step.library();
  bool is_whole = form && call->kernel != &form->start && call->kernel != &form->wait;
  return is_whole && !step.effect ? call : nullptr;
}

/// Collectives that are one step, and how far they are.
struct Bucket {
  std::vector<int32_t> members;  // steps of the plan as it was
  int64_t bytes = 0;
  int32_t ticket = -1;  // buffer
};

class Overlap {
 public:
  Overlap(Plan& plan, bool may_go_ahead)
      : plan_(plan),
        most_ahead_(may_go_ahead ? kMostAhead : 0),
        depends_(plan),
        missing_(plan.steps.size()),
        is_done_(plan.steps.size()) {}

  void run() {
    std::vector<int32_t> free;
    for (size_t s = 0; s < missing_.size(); ++s) {
      missing_[s] = depends_.before[s].size();
      if (missing_[s] == 0) free.push_back(static_cast<int32_t>(s));
    }
    for (int32_t s : free) make_ready(s);
    for (;;) {
      bool waits = !filling_.empty() || !started_.empty();
      if (!ready_.empty() && !(waits && is_too_far(*ready_.begin())))
        add(*ready_.begin());
      else if (waits)
        wait_for_first();
      else
        break;
    }
    plan_.steps = std::move(made_);
  }

 private:
  Step& step(int32_t s) { return plan_.steps[static_cast<size_t>(s)]; }

  void make_ready(int32_t s) {
    if (splittable(step(s)))
      fill(s);
    else
      ready_.insert(s);
  }

  void finish(int32_t s) {
    is_done_[static_cast<size_t>(s)] = true;
    for (int32_t later : depends_.after[static_cast<size_t>(s)])
      if (--missing_[static_cast<size_t>(later)] == 0) make_ready(later);
  }

  void add(int32_t s) {
    ready_.erase(s);
    made_.push_back(std::move(step(s)));
    finish(s);
  }

  /// The first step that is neither done nor a sum under way: it waits, or is next.
  int32_t first_left() {
    while (is_done_[static_cast<size_t>(first_)] || under_way_.count(first_)) ++first_;
    return first_;
  }

  /// Whether a step would run before one that waits for a sum, and no memory is left for that.
  bool is_too_far(int32_t s) {
    if (first_left() == s) {
      ahead_ = 0;
      return false;
    }
    for (int32_t place : step(s).writes) {
      int32_t own = step(s).buffers[static_cast<size_t>(place)] - plan_.first_own();
      if (own >= 0) ahead_ += plan_.bytes[static_cast<size_t>(own)];
    }
    if (ahead_ <= most_ahead_ && most_ahead_ > 0) return false;
    ahead_ = 0;
    return true;
  }

  /// A sum that is ready joins those that it can be one step with.
  void fill(int32_t s) {
    under_way_.insert(s);
    const LibraryStep& call = *splittable(step(s));
    auto joins = [&](const Bucket& bucket) {
      const LibraryStep& other = *splittable(step(bucket.members[0]));
      return other.op == call.op && other.attrs == call.attrs &&
             other.in[0]->dtype == call.in[0]->dtype && bucket.members.size() < kMostJoined;
    };
    auto bucket = std::ranges::find_if(filling_, joins);
    if (bucket == filling_.end()) bucket = filling_.emplace(filling_.end());
    bucket->members.push_back(s);
    bucket->bytes += call.in[0]->bytes();
    if (bucket->bytes < kBucketBytes) return;
    Bucket full = std::move(*bucket);
    filling_.erase(bucket);
    start(std::move(full));
  }

  void start(Bucket bucket) {
    while (started_.size() >= workers::Transport::kMostStarted) wait_for_first();
    plan_.bytes.push_back(SplitForm::kTicketBytes);
    bucket.ticket = plan_.first_own() + static_cast<int32_t>(plan_.bytes.size()) - 1;
    made_.push_back(joined(bucket, form_of(step(bucket.members[0]))->start));
    started_.push_back(std::move(bucket));
  }

  void wait_for_first() {
    // Nothing more joins a bucket before the wait.
    while (!filling_.empty() && started_.size() < workers::Transport::kMostStarted) {
      Bucket bucket = std::move(filling_.front());
      filling_.pop_front();
      start(std::move(bucket));
    }
    Bucket bucket = std::move(started_.front());
    started_.pop_front();
    made_.push_back(joined(bucket, form_of(step(bucket.members[0]))->wait));
    for (int32_t s : bucket.members) under_way_.erase(s), finish(s);
  }

  /// One step of all sums of a bucket.
  Step joined(const Bucket& bucket, const LibraryKernel& kernel) {
    const Step& first = step(bucket.members[0]);
    bool starts = &kernel == &form_of(first)->start;
    LibraryStep call = *first.library();
    call.kernel = &kernel, call.in.clear(), call.out.clear();
    size_t count = bucket.members.size();
    Step made{.effect = true, .name = first.name, .loc = first.loc};
    if (count > 1) made.name = format("{} of {}", call.op->name, count);
    made.name = format("{} {}", starts ? "start" : "wait for", made.name);
    for (size_t operand : {size_t{0}, size_t{1}})
      for (int32_t s : bucket.members) made.buffers.push_back(step(s).buffers[operand]);
    made.buffers.push_back(bucket.ticket);
    made.writes.resize(count + 1);
    std::iota(made.writes.begin(), made.writes.end(), static_cast<int32_t>(count));
    for (int32_t s : bucket.members) {
      const LibraryStep& own = *step(s).library();
      call.in.push_back(own.in[0]), call.out.push_back(own.out[0]);
      if (!starts) made.ops.insert(made.ops.end(), step(s).ops.begin(), step(s).ops.end());
    }
    made.what = std::move(call);
    return made;
  }

  Plan& plan_;
  int64_t most_ahead_, ahead_ = 0;
  StepDependences depends_;
  std::vector<size_t> missing_;  // by step: those before it that are not done
  std::vector<bool> is_done_;
  std::set<int32_t> ready_, under_way_;
  int32_t first_ = 0;
  std::deque<Bucket> filling_, started_;
  std::vector<Step> made_;
};

}  // namespace

void fold_in_place(Plan& plan) {
  if (std::ranges::none_of(plan.steps, splittable)) return;
  size_t buffers = static_cast<size_t>(plan.first_own()) + plan.bytes.size();
  std::vector<size_t> last(buffers);      // the last step that uses a buffer
  std::vector<int32_t> instead(buffers);  // of a buffer: the one whose memory it has
  std::iota(instead.begin(), instead.end(), 0);
  for (size_t s = 0; s < plan.steps.size(); ++s)
    for (int32_t b : plan.steps[s].buffers) last[static_cast<size_t>(b)] = s;
  for (const Plan::Output& out : plan.outputs)
    last[static_cast<size_t>(out.buffer)] = plan.steps.size();
  auto bytes = [&](int32_t b) -> int64_t& {
    return plan.bytes[static_cast<size_t>(b - plan.first_own())];
  };
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    Step& step = plan.steps[s];
    bool folds = splittable(step);
    int32_t operand = step.buffers.empty() ? -1 : step.buffers[0];
    for (int32_t& b : step.buffers) b = instead[static_cast<size_t>(b)];
    if (!folds || operand < plan.first_own() || last[static_cast<size_t>(operand)] != s) continue;
    int32_t& result = step.buffers[1];
    if (bytes(step.buffers[0]) != bytes(result)) continue;
    bytes(result) = 0;
    instead[static_cast<size_t>(result)] = step.buffers[0];
    result = step.buffers[0];
  }
  for (Plan::Output& out : plan.outputs) out.buffer = instead[static_cast<size_t>(out.buffer)];
}

void overlap_collectives(Plan& plan, bool may_go_ahead) {
  if (std::ranges::any_of(plan.steps, splittable)) Overlap(plan, may_go_ahead).run();
}

std::string collectives_text(const Plan& plan) {
  std::string text;
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    const LibraryStep* call = plan.steps[s].library();
    if (const SplitForm* form = form_of(plan.steps[s]); !form || call->kernel != &form->start)
      continue;
    size_t end = s + 1;
    while (plan.steps[end].buffers.empty() ||
           plan.steps[end].buffers.back() != plan.steps[s].buffers.back())
      ++end;
    std::vector<std::string> types;
    int64_t bytes = 0;
    for (TypeRef type : call->in) types.push_back(format("{}", *type)), bytes += type->bytes();
    text += format("step {}: {} of {}: {}, {} until it is waited for in step {}\n", s,
                   call->op->name, join(types, ", "), bytes_text(static_cast<size_t>(bytes)),
                   end - s == 2 ? "1 step" : format("{} steps", end - s - 1), end);
  }
  return text;
}

}  // namespace tn
