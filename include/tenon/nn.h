#pragma once
// Neural networks: modules, layers, and how to train them. See also tenon/optim.h.
#include "tenon/nn/activations.h"
#include "tenon/nn/functions.h"
#include "tenon/nn/layers.h"
#include "tenon/nn/module.h"
#include "tenon/nn/pipeline_stages.h"
#include "tenon/nn/recurrent.h"
#include "tenon/nn/sequential.h"
#include "tenon/nn/sharding.h"
#include "tenon/nn/small_layers.h"
#include "tenon/nn/training.h"
#include "tenon/nn/transformer.h"
