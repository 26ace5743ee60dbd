// Messages between two workers. They are effects: each takes the effects that come before it as
// operands, so that a plan runs them in the order of the program.
#include "base/error.h"
#include "ops/collectives.h"
#include "ops/families.h"
#include "ops/op_decls.h"
#include "ops/shapes.h"

namespace tn::ops {
namespace {

const Type kDone{DType::b1, {Dim(0)}};

void check_peer(std::string_view op, int64_t workers, int64_t peer) {
  if (peer < 0 || peer >= workers)
    fail("{}: there is no worker {}: the group has {}", op, peer, workers);
}

}  // namespace

constexpr auto send_def = Op<SendAttrs>{
    .doc = "Sends `x` to another worker of the group.",
    .args = {"x", "*earlier"},
    .surface = false,
    .infer = [](const SendAttrs& a, Types) -> TypeList {
      check_peer("send", a.workers, a.peer);
      return Type(kDone);
    },
    .gradient = Gradient::zero,
    .batch = Batch::loop,
};
TN_OP(send);

constexpr auto recv_def = Op<ReceiveAttrs>{
    .doc = "What another worker of the group sends, and an empty tensor for later effects.",
    .args = {"*earlier"},
    .surface = false,
    .infer = [](const ReceiveAttrs& a, Types) -> TypeList {
      check_peer("recv", a.workers, a.peer);
      return {Type{a.dtype, a.shape}, kDone};
    },
    .gradient = Gradient::zero,
    .batch = Batch::loop,
};
TN_OP(recv);

}  // namespace tn::ops
