"""The C++ forms of Python's public names: where they are, other names, and reasons for none."""

# Namespaces of C++ in which the names of a module are looked for. A namespace `tn::fft` cannot be
# beside the function of that name.
NAMESPACES = {
    "": ("tn", "tn::nn", "tn::model"),
    "Tensor": ("tn", "tn::Tensor"),
    "amp": ("tn::amp",),
    "data": ("tn::data",),
    "distributed": ("tn::distributed",),
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
    "MemoryReport": "tn::CompiledFunction",  # its show("memory") gives text
    "TrainModel": "tn::model::TrainModel",
    "InvalidIndex": "tn::UserError",  # with a Fault
    "InvalidType": "tn::UserError",
    "InvalidValue": "tn::UserError",
    "MissingFile": "tn::UserError",
    "NamedDimension": "tn::DimensionInfo",
    "OutOfMemory": "tn::UserError",
    "OutOfRange": "tn::UserError",
    "Pullback": "tn::flat::Pullback",
    "asarray": "tn::array",
    "load": "tn::load_npy",  # load_npz, load_safetensors
    "save": "tn::save_npy",
    "savez": "tn::save_npz",
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
    "linalg.cond": "tn::condition_number",
    "linalg.norm": "tn::linalg::norm",
    "model.Connection": "tn::model::Connected",
    "model.Huber": "tn::model::HuberLoss",
    "model.L1": "tn::model::L1Loss",
    "model.MSE": "tn::model::MSELoss",
    "model.MatMul": "tn::model::op_block",
    "model.ScaledDotProduct": "tn::model::op_block",
    "model.Sequential": "tn::model::Model",  # model |= block
    "model.block": "tn::model::BlockDef",
    "model.compile_model": "tn::model::compile",
    "nn.ModuleDict": "std::map",  # fields may be maps and vectors of modules
    "nn.ModuleList": "std::vector",
    "distributed.average_gradients": "tn::distributed::all_sum",
    "distributed.barrier": "tn::distributed::Group",  # its barrier()
    "distributed.is_available": "tn::distributed::init",  # its size()
    "Tensor.cuda": "tn::Tensor::to",  # to("cuda")
    "Tensor.local": "tn::Tensor::to_vector",
    "distributed.gather": "tn::Tensor::to",  # to(Device())
    "workers": "tn::set_workers",
    "nn.AllToShardedLinear": "tn::distributed::sum_gradients",
    "nn.ShardedToAllLinear": "tn::distributed::sum_replicated",
    "nn.average_gradients": "tn::distributed::all_sum",
    "nn.shard_linear": "tn::distributed::sum_replicated",
    "nn.checkpoint": "tn::checkpoint",
    "random.State": "tn::random::state",
    "signal.context": "tn::signal::Context",
    "signal.exit": "tn::signal::leave",
    "tree.flatten": "tn::tree::leaves",
}

# Physical models take settings where Python takes a backend: `compile.optimization_level` 0 is the
# interpreter, and the sources are those of `Executable::source`.
for _place in ("", "model."):
    FORMS |= dict.fromkeys(
        (f"{_place}{name}Backend" for name in ("Cpu", "Cuda", "Interpreter")),
        "tn::model::PhysicalSettings",
    )
    FORMS |= dict.fromkeys(
        (f"{_place}{name}Backend" for name in ("C", "Numpy", "Torch", "Jax")), "tn::Executable"
    )

# No form, by reason.
REASONS = {
    "classes below those of the Python package": [
        *"LiveBuffer LogicalModel ModelBlock ModelFunctions Op ResolvedModel".split(),
        *"TreeStructure tree.TreeStructure".split(),
    ],
    "the type of a tree is its structure, and `fields` registers it": [
        *"tree.register tree.structure".split()
    ],
    "a constructor: nn::Pipeline(microbatches, stages...)": ["nn.pipeline", "pipeline"],
    "tensors are lazy: f(x).shape() and f(x).dtype() compute nothing": [
        *"ShapeDtypeStruct eval_shape".split()
    ],
    "Python only: the NumPy protocol": ["Tensor.numpy"],
    "C++ evaluates the next batch with async_eval while a step runs: there is no thread to end": [
        *"data.Prefetch data.prefetch".split()
    ],
    "jvp is called again: each call computes the value, too": ["linearize"],
    "no block: write a BlockDef whose `compute` calls the layer of tn::nn": [
        *"model.GRU model.LSTM model.RNN model.Transformer".split(),
        *"model.TransformerDecoder model.TransformerDecoderLayer".split(),
        *"model.TransformerEncoder model.TransformerEncoderLayer model.Upsample".split(),
    ],
    "save_npz: NumPy reads it as well, and safetensors is what to use for large files": [
        "savez_compressed"
    ],
}
