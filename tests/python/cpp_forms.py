"""The C++ forms of Python's public names: where they are, other names, and reasons for none."""

# Namespaces of C++ in which the names of a module are looked for. A namespace `tn::fft` cannot be
# beside the function of that name.
NAMESPACES = {
    "": ("tn", "tn::nn", "tn::model"),
    "Tensor": ("tn", "tn::Tensor"),
    "amp": ("tn::amp",),
    "data": ("tn::data",),
    "fft": ("tn",),
    "linalg": ("tn::linalg", "tn"),
    "memory": ("tn",),
    "model": ("tn::model",),
    "nn": ("tn::nn", "tn::optim"),
    "nn.init": ("tn::nn::init",),
    "optim": ("tn::optim",),
    "random": ("tn::random",),
    "signal": ("tn::signal",),
    "tree": ("tn::tree",),
}

# Another name or another place.
FORMS = {
    "CompiledFunction": "tn::CompiledFunction",
    "DimensionInputInfo": "tn::DimensionInfo",
    "Explanation": "tn::CompiledFunction",  # its explain() gives text
    "HotPath": "tn::HotPathInfo",
    "HotPaths": "tn::HotPathInfo",
    "InvalidIndex": "tn::UserError",  # with a Fault
    "InvalidType": "tn::UserError",
    "InvalidValue": "tn::UserError",
    "MissingFile": "tn::UserError",
    "NamedDimension": "tn::DimensionInfo",
    "OutOfMemory": "tn::UserError",
    "OutOfRange": "tn::UserError",
    "Pullback": "tn::flat::Pullback",
    "asarray": "tn::array",
    "average": "tn::weighted_mean",
    "bool": "tn::boolean",
    "cpu": "tn::Device",
    "custom_jvp": "tn::custom_function",
    "custom_vjp": "tn::custom_function",
    "delete": "tn::delete_elements",
    "device": "tn::DeviceScope",
    "dtype": "tn::DType",
    "e": "std::numbers::e",
    "enable_compile": "tn::disable_compile",
    "explain": "tn::CompiledFunction",
    "from_dlpack": "tn::from_memory",
    "get_printoptions": "tn::print_options",
    "gradient": "tn::slopes",
    "graph_text": "tn::Tensor::graph",
    "histogram": "tn::count_in_bins",
    "inf": "std::numeric_limits",
    "insert": "tn::insert_elements",
    "linearize": "tn::jvp",
    "multinomial": "tn::random::multinomial",
    "nan": "std::numeric_limits",
    "no_grad": "tn::NoGrad",
    "pi": "std::numbers::pi",
    "polyfit": "tn::fit_polynomial",
    "printoptions": "tn::set_print_options",
    "rand": "tn::random::rand",
    "rand_like": "tn::random::rand_like",
    "randn": "tn::random::randn",
    "randn_like": "tn::random::randn_like",
    "select": "tn::where",
    "set_printoptions": "tn::set_print_options",
    "show": "tn::CompiledFunction",
    "switch": "tn::switch_",
    "unique": "tn::distinct",
    "Tensor.T": "tn::matrix_transpose",
    "Tensor.at": "tn::index_update",
    "Tensor.average": "tn::weighted_mean",
    "Tensor.clone": "tn::copy",
    "Tensor.cpu": "tn::Tensor::to",
    "Tensor.delete": "tn::delete_elements",
    "Tensor.double": "tn::astype",
    "Tensor.float": "tn::astype",
    "Tensor.gradient": "tn::slopes",
    "Tensor.half": "tn::astype",
    "Tensor.histogram": "tn::count_in_bins",
    "Tensor.insert": "tn::insert_elements",
    "Tensor.int": "tn::astype",
    "Tensor.itemsize": "tn::size_of",
    "Tensor.long": "tn::astype",
    "Tensor.mT": "tn::matrix_transpose",
    "Tensor.masked_fill": "tn::where",
    "Tensor.nbytes": "tn::Tensor::bytes",
    "Tensor.ndim": "tn::Tensor::rank",
    "Tensor.norm": "tn::vector_norm",
    "Tensor.numel": "tn::Tensor::size",
    "Tensor.requires_grad_": "tn::require_grad",
    "Tensor.t": "tn::matrix_transpose",
    "Tensor.to_device": "tn::Tensor::to",
    "Tensor.tolist": "tn::Tensor::to_vector",
    "Tensor.unique": "tn::distinct",
    "amp.Policy": "tn::amp::Autocast",
    "amp.autocast": "tn::amp::Autocast",
    "amp.policy": "tn::amp::autocast_type",
    "data.Prefetch": "tn::async_eval",
    "data.prefetch": "tn::async_eval",
    "data.split": "tn::data::batches",
    "linalg.cond": "tn::condition_number",
    "linalg.norm": "tn::vector_norm",
    "model.Connection": "tn::model::Connected",
    "model.MatMul": "tn::model::op_block",
    "model.ScaledDotProduct": "tn::model::op_block",
    "model.Sequential": "tn::model::Model",  # model |= block
    "model.block": "tn::model::BlockDef",
    "model.compile_model": "tn::model::compile",
    "nn.ModuleDict": "std::map",  # fields may be maps and vectors of modules
    "nn.ModuleList": "std::vector",
    "nn.checkpoint": "tn::checkpoint",
    "random.State": "tn::random::state",
    "signal.context": "tn::signal::Context",
    "signal.exit": "tn::signal::leave",
    "tree.flatten": "tn::tree::leaves",
}

# Activations are functions of `nn`, which a Sequential takes as layers: no classes.
ACTIVATIONS = {
    "CELU": "celu",
    "ELU": "elu",
    "GELU": "gelu",
    "GLU": "glu",
    "HardShrink": "hard_shrink",
    "HardTanh": "hard_tanh",
    "Hardswish": "hardswish",
    "LeakyReLU": "leaky_relu",
    "LogSigmoid": "log_sigmoid",
    "LogSoftmax": "log_softmax",
    "Mish": "mish",
    "ReLU": "relu",
    "ReLU2": "relu2",
    "ReLU6": "relu6",
    "SELU": "selu",
    "SiLU": "silu",
    "Sigmoid": "sigmoid",
    "Softmax": "softmax",
    "Softmin": "softmin",
    "Softplus": "softplus",
    "Softshrink": "softshrink",
    "Softsign": "softsign",
    "Step": "step",
    "Tanh": "tanh",
}

# No form, by reason.
_LAYERS = """ALiBi AdaptiveMaxPool1d AdaptiveMaxPool2d AdaptiveMaxPool3d BCELoss BCEWithLogitsLoss
    CircularPad1d CircularPad2d CircularPad3d ConstantPad1d ConstantPad2d ConstantPad3d
    CrossEntropyLoss GRU GRUCell GaussianNLLLoss HuberLoss Identity KLDivLoss L1Loss LSTM LSTMCell
    MSELoss MarginRankingLoss NLLLoss PReLU RNN RNNCell ReflectionPad1d ReflectionPad2d
    ReflectionPad3d ReplicationPad1d ReplicationPad2d ReplicationPad3d RoPE
    SinusoidalPositionalEncoding SmoothL1Loss Transformer TransformerDecoder
    TransformerDecoderLayer TransformerEncoder TransformerEncoderLayer TripletMarginLoss Upsample
    ZeroPad1d ZeroPad2d ZeroPad3d""".split()
REASONS = {
    "layers and losses that are written in Python until they are records": [
        *(f"nn.{name}" for name in _LAYERS),
        *(f"model.{name}" for name in _LAYERS if name != "Identity"),
        *"nn.AdaptiveAvgPool1d nn.AdaptiveAvgPool2d nn.AdaptiveAvgPool3d".split(),
    ],
    "an optimizer without a rule for one tensor (docs/design/032-optimizers.md)": [
        *"optim.LBFGS nn.LBFGS".split()
    ],
    "C++ programs use several optimizers side by side": [
        *"optim.MultiOptimizer nn.MultiOptimizer".split()
    ],
    "classes below those of the Python package": [
        *"LiveBuffer LogicalModel ModelBlock ModelFunctions Op ResolvedModel".split(),
        *"TreeStructure tree.TreeStructure".split(),
    ],
    "the type of a tree is its structure, and `fields` registers it": [
        *"tree.register tree.structure".split()
    ],
    "tensors are lazy: f(x).shape() and f(x).dtype() compute nothing": [
        *"ShapeDtypeStruct eval_shape".split()
    ],
    "Python only: the NumPy protocol": ["Tensor.numpy"],
    "not built yet: NumPy's files": [*"load save savez savez_compressed".split()],
    "not built yet: profiles and reports as values": [*"MemoryReport Profile profile".split()],
    "not built yet: backends as classes, and training models": [
        *"CBackend CpuBackend CudaBackend InterpreterBackend JaxBackend NumpyBackend".split(),
        *"TorchBackend TrainModel model.CBackend model.CpuBackend model.CudaBackend".split(),
        *"model.InterpreterBackend model.JaxBackend model.NumpyBackend model.TorchBackend".split(),
        *"model.TrainModel model.PhysicalTrainModel".split(),
    ],
}
