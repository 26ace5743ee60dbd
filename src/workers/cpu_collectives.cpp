// The kernels of collectives on the CPU. The transport of the group moves and folds the data; here
// it is brought into the order that the transport knows, one piece per worker.
#include <algorithm>
#include <cstring>
#include <new>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "backend/cpu/library/cpu_library.h"
#include "backend/launcher.h"
#include "base/error.h"
#include "base/hash.h"
#include "ops/collectives.h"
#include "ops/op_decls.h"
#include "ops/runtime_types.h"
#include "plan/run_places.h"
#include "plan/split_form.h"
#include "runtime/buffer.h"
#include "runtime/transport.h"
#include "workers/local_groups.h"
#include "workers/worker_watch.h"
#include "workers/world.h"

namespace tn::cpu {
namespace {

using namespace ops;
using workers::Collective;
using workers::CollectiveCall;
using workers::Fold;
using workers::Transport;

Transport& group_of(std::string_view name, int64_t size) {
  Transport& group = workers::group(name);
  if (group.size() != size)
    fail("workers: group '{}' has {} workers, not {}", name, group.size(), size);
  return group;
}

/// "train.py:31, in loss": the user's line of the step that runs. Resolved once: programs run the
/// same steps again.
std::string_view place_of_step() {
  thread_local std::unordered_map<uint64_t, std::string> known;
  Loc place = place_now(running_loc);
  auto [at, is_new] = known.try_emplace(place.bits);
  if (is_new) {
    std::string text = to_text(place);
    size_t folder = text.rfind('/', text.find(", in "));
    at->second = folder == text.npos ? text : text.substr(folder + 1);
  }
  return at->second;
}

/// What the step that runs is about, if it is known. Operands of explicit collectives may differ by
/// process, so what counts there is the order in which the program asked for them.
std::optional<workers::Origin> origin_of_step(std::string_view name, Transport& group) {
  const workers::RunOrigins& run = workers::run_origins;
  if (!workers::local_groups.empty()) {
    auto own = std::ranges::lower_bound(run.calls, running_loc.bits, {}, &workers::CallOrigin::loc);
    bool is_known = own != run.calls.end() && own->loc == running_loc.bits;
    bool is_axis = std::ranges::count(workers::local_groups, name, &workers::LocalGroup::name) > 0;
    return is_known && is_axis ? std::optional(own->origin) : std::nullopt;
  }
  if (run.call) {
    if (group.asked.last_call.exchange(run.call) != run.call) ++group.asked.calls;
    return workers::Origin{.ops = mix(group.asked.calls)};  // no number of what was recorded
  }
  if (uint64_t number = marked_place_now(running_loc).mark()) return workers::Origin{.ops = number};
  return {};
}

/// A worker that is alone has all there is.
void run(std::string_view name, int64_t size, CollectiveCall call) {
  if (size > 1) {
    Transport& group = group_of(name, size);
    call.loc = running_loc.bits;
    call.origin = origin_of_step(name, group), call.given = workers::run_origins.given;
    if (group.shows_places()) call.place = place_of_step();
    return watched(name, static_cast<int>(size), call, [&] { group.run(call); });
  }
  if (call.out != call.in)
    std::memcpy(call.out, call.in, static_cast<size_t>(call.count) * element_bytes(call.element));
}

/// A tensor whose axis `axis` has a digit for the workers: [outer, workers, inner], in bytes.
struct Divided {
  int64_t outer, inner;
};
Divided divided(const Type& whole, int axis, int64_t radix, int64_t size) {
  Divided d{radix, size_of(whole.dtype)};
  for (int i = 0; i < axis; ++i) d.outer *= whole.shape[i].value();
  for (int i = axis; i < whole.rank(); ++i) d.inner *= whole.shape[i].value();
  d.inner = d.inner / radix / size;
  return d;
}

/// Between [workers, outer, inner] and [outer, workers, inner].
void exchange_digits(const void* from, void* to, int64_t first, int64_t second, int64_t inner) {
  auto* source = static_cast<const std::byte*>(from);
  auto* target = static_cast<std::byte*>(to);
  for (int64_t i = 0; i < first; ++i)
    for (int64_t k = 0; k < second; ++k)
      std::memcpy(target + (k * first + i) * inner, source + (i * second + k) * inner,
                  static_cast<size_t>(inner));
}

BufferRef room_for(const InternedType& type) { return allocate(static_cast<size_t>(type.bytes())); }

/// What other workers are told of a call that is about a tensor of this type.
CollectiveCall call_about(Collective kind, const InternedType& type) {
  CollectiveCall made{.kind = kind, .element = element_of(type.dtype), .count = type.elements};
  static_assert(kMaxRank <= std::size(made.shape.extents));
  made.shape.rank = type.rank();
  for (int i = 0; i < type.rank(); ++i) made.shape.extents[i] = type.shape[i].value();
  return made;
}

CollectiveCall call_of(Collective kind, const LibraryCall& call) {
  CollectiveCall made = call_about(kind, *call.in_types[0]);
  made.in = call.in[0], made.out = call.out[0];
  return made;
}

Fold fold_of(const GroupAttrs&) { return Fold::sum; }
Fold fold_of(const AllFoldAttrs& a) {
  if (a.mode == AllFold::prod) return Fold::product;
  return a.mode == AllFold::max || a.mode == AllFold::any ? Fold::max : Fold::min;
}

template <class A>
void run_fold(const LibraryCall& call) {
  const auto& a = *static_cast<const A*>(call.attrs);
  CollectiveCall made = call_of(Collective::all_reduce, call);
  made.fold = fold_of(a);
  run(a.mesh_axis, a.workers, made);
}

/// A fold in two steps, of one operand or several. One that is not under way has no group: the
/// worker is alone, or its start has failed.
struct FoldTicket {
  Transport* group;
  uint64_t number;
};
static_assert(sizeof(FoldTicket) <= SplitForm::kTicketBytes);

FoldTicket& ticket_of(const LibraryCall& call) {
  return *static_cast<FoldTicket*>(call.out[call.in_types.size()]);
}

template <class A>
CollectiveCall joined_call(const LibraryCall& call, std::vector<workers::CallPiece>& pieces) {
  CollectiveCall made = call_of(Collective::all_reduce, call);
  made.fold = fold_of(*static_cast<const A*>(call.attrs));
  if (call.in_types.size() == 1) return made;
  made.count = 0, made.shape = {};
  for (size_t i = 0; i < call.in_types.size(); ++i) {
    pieces.push_back({call.in[i], call.out[i], call.in_types[i]->elements});
    made.count += pieces.back().count;
  }
  made.pieces = pieces;
  return made;
}

template <class A>
void start_fold(const LibraryCall& call) {
  const auto& a = *static_cast<const A*>(call.attrs);
  auto& own = *new (&ticket_of(call)) FoldTicket{};
  if (a.workers == 1) {
    for (size_t i = 0; i < call.in_types.size(); ++i)
      if (call.in[i] != call.out[i])
        std::memcpy(call.out[i], call.in[i], static_cast<size_t>(call.in_types[i]->bytes()));
    return;
  }
  Transport& group = group_of(a.mesh_axis, a.workers);
  std::vector<workers::CallPiece> pieces;
  CollectiveCall made = joined_call<A>(call, pieces);
  made.loc = running_loc.bits;
  if (group.shows_places()) made.place = place_of_step();
  own.number = group.start(made);
  own.group = &group;
}

template <class A>
void wait_for_fold(const LibraryCall& call) {
  const auto& a = *static_cast<const A*>(call.attrs);
  FoldTicket& own = ticket_of(call);
  if (!own.group) return;
  std::vector<workers::CallPiece> pieces;
  CollectiveCall made = joined_call<A>(call, pieces);
  Transport& group = *std::exchange(own.group, nullptr);  // it is not abandoned from here on
  watched(a.mesh_axis, static_cast<int>(a.workers), made, [&] { group.complete(own.number); });
}

void abandon_fold(const LibraryCall& call) {
  FoldTicket& own = ticket_of(call);
  if (!own.group) return;
  // A worker that has begun it may wait for this one elsewhere.
  for (const workers::LocalGroup& group : workers::local_groups) group.transport->stop();
  own.group->abandon(own.number);
}

constexpr SplitForm kSplitSum = {{&ops::all_sum, start_fold<GroupAttrs>},
                                 {&ops::all_sum, wait_for_fold<GroupAttrs>},
                                 abandon_fold};
constexpr SplitForm kSplitFold = {{&ops::all_fold, start_fold<AllFoldAttrs>},
                                  {&ops::all_fold, wait_for_fold<AllFoldAttrs>},
                                  abandon_fold};

const SplitForm* split_form_of(const OpDef& op) {
  if (&op == &ops::all_sum) return &kSplitSum;
  return &op == &ops::all_fold ? &kSplitFold : nullptr;
}

void run_all_gather(const LibraryCall& call) {
  const auto& a = *static_cast<const DigitAttrs*>(call.attrs);
  Divided d = divided(*call.out_types[0], a.axis.i, a.radix, a.workers);
  CollectiveCall made = call_of(Collective::all_gather, call);
  if (d.outer == 1) return run(a.mesh_axis, a.workers, made);
  BufferRef room = room_for(*call.out_types[0]);
  made.out = room.data();
  run(a.mesh_axis, a.workers, made);
  exchange_digits(room.data(), call.out[0], a.workers, d.outer, d.inner);
}

void run_reduce_scatter(const LibraryCall& call) {
  const auto& a = *static_cast<const DigitAttrs*>(call.attrs);
  Divided d = divided(*call.in_types[0], a.axis.i, a.radix, a.workers);
  CollectiveCall made = call_of(Collective::reduce_scatter, call);
  made.count = call.out_types[0]->elements;
  if (d.outer == 1) return run(a.mesh_axis, a.workers, made);
  BufferRef room = room_for(*call.in_types[0]);
  exchange_digits(call.in[0], room.data(), d.outer, a.workers, d.inner);
  made.in = room.data();
  run(a.mesh_axis, a.workers, made);
}

void run_all_to_all(const LibraryCall& call) {
  const auto& a = *static_cast<const ExchangeAttrs*>(call.attrs);
  // Parts of what this worker holds, by the digit that will be divided.
  Divided to = divided(*call.in_types[0], a.to_axis.i, a.to_radix, a.workers);
  BufferRef sent = room_for(*call.in_types[0]), got = room_for(*call.in_types[0]);
  exchange_digits(call.in[0], sent.data(), to.outer, a.workers, to.inner);
  CollectiveCall made = call_of(Collective::all_to_all, call);
  made.count /= a.workers, made.in = sent.data(), made.out = got.data();
  run(a.mesh_axis, a.workers, made);
  Divided from = divided(*call.out_types[0], a.axis.i, a.radix, a.workers);
  exchange_digits(got.data(), call.out[0], a.workers, from.outer, from.inner);
}

void run_slice_of_worker(const LibraryCall& call) {
  const auto& a = *static_cast<const DigitAttrs*>(call.attrs);
  Divided d = divided(*call.in_types[0], a.axis.i, a.radix, a.workers);
  int rank = a.workers > 1 ? group_of(a.mesh_axis, a.workers).rank() : 0;
  auto* from = static_cast<const std::byte*>(call.in[0]) + rank * d.inner;
  auto* to = static_cast<std::byte*>(call.out[0]);
  for (int64_t i = 0; i < d.outer; ++i)
    std::memcpy(to + i * d.inner, from + i * a.workers * d.inner, static_cast<size_t>(d.inner));
}

void run_all_broadcast(const LibraryCall& call) {
  const auto& a = *static_cast<const RootAttrs*>(call.attrs);
  CollectiveCall made = call_of(Collective::broadcast, call);
  made.peer = static_cast<int32_t>(a.root);
  run(a.mesh_axis, a.workers, made);
}

void run_send(const LibraryCall& call) {
  const auto& a = *static_cast<const SendAttrs*>(call.attrs);
  CollectiveCall made = call_of(Collective::send, call);
  made.peer = static_cast<int32_t>(a.peer), made.place = place_of_step();
  watched(a.mesh_axis, 2, made, [&] { group_of(a.mesh_axis, a.workers).send(made); });
}

void run_recv(const LibraryCall& call) {
  const auto& a = *static_cast<const ReceiveAttrs*>(call.attrs);
  CollectiveCall made = call_about(Collective::recv, *call.out_types[0]);
  made.peer = static_cast<int32_t>(a.peer), made.out = call.out[0];
  made.place = place_of_step();
  watched(a.mesh_axis, 2, made, [&] { group_of(a.mesh_axis, a.workers).receive(made); });
}

constexpr LibraryKernel kEntriesCollectives[] = {
    {&ops::all_sum, run_fold<GroupAttrs>},
    {&ops::all_fold, run_fold<AllFoldAttrs>},
    {&ops::all_gather, run_all_gather},
    {&ops::reduce_scatter, run_reduce_scatter},
    {&ops::all_to_all, run_all_to_all},
    {&ops::slice_of_worker, run_slice_of_worker},
    {&ops::all_broadcast, run_all_broadcast},
    {&ops::send, run_send},
    {&ops::recv, run_recv},
};

}  // namespace
}  // namespace tn::cpu

namespace tn::workers {

void install_kernels() {
  [[maybe_unused]] static const bool once = [] {
    cpu::add_kernels(cpu::kEntriesCollectives);
    split_form = cpu::split_form_of;
    return true;
  }();
}

}  // namespace tn::workers
