#pragma once
// The whole public API.
#include "tenon/compile.h"
#include "tenon/control_flow.h"
#include "tenon/debug.h"
#include "tenon/dim.h"
#include "tenon/dtype.h"
#include "tenon/error.h"
#include "tenon/operators.h"
#include "tenon/ops.h"
#include "tenon/random.h"
#include "tenon/shape.h"
#include "tenon/tensor.h"
#include "tenon/transforms.h"
