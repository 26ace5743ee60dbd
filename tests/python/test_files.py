"""Tensors and weights in files: what is written is read, by us and by others, and bad files."""

import doctest
import io
import json
import os
import pathlib
import random
import re
import resource
import zipfile

import numpy as np
import pytest

import tenon as tn
from tenon import files, nn

DATA = pathlib.Path(__file__).parent.parent / "data"
DTYPES = [
    tn.bool, tn.int8, tn.int16, tn.int32, tn.int64, tn.uint8, tn.uint16, tn.uint32, tn.uint64,
    tn.float8_e4m3, tn.float8_e5m2, tn.float16, tn.bfloat16, tn.float32, tn.float64, tn.complex64,
]  # fmt: skip


def same(a, b):
    assert a.keys() == b.keys()
    for name in a:
        assert (a[name].dtype, a[name].shape) == (b[name].dtype, b[name].shape), name
        assert a[name].tolist() == b[name].tolist(), name


def one_of_each():
    made = {d.name: tn.array([[0, 1], [1, 0], [1, 1]]).astype(d) for d in DTYPES}
    return made | {"scalar": tn.array(2.5), "nothing": tn.zeros((0, 4))}


# safetensors ----------------------------------------------------------------------------------


def test_safetensors_round_trip(tmp_path):
    path, texts = tmp_path / "all.safetensors", {"format": "pt", "ключ": 'a "text"\n'}
    tn.save_safetensors(path, one_of_each(), texts)
    for loaded, metadata in [
        tn.load_safetensors(path, return_metadata=True, verify=True),
        tn.load(path, return_metadata=True),
    ]:
        same(loaded, one_of_each())
        assert list(loaded) == list(one_of_each()) and metadata == texts
    same(tn.load_safetensors(os.fsencode(path)), one_of_each())


def test_file_objects(tmp_path):
    file = io.BytesIO()
    tn.save_safetensors(file, one_of_each(), {"a": "b"})
    for read in (tn.load, tn.load_safetensors):
        loaded, metadata = read(io.BytesIO(file.getvalue()), return_metadata=True)
        same(loaded, one_of_each())
        assert metadata == {"a": "b"}
    tn.save_safetensors(tmp_path / "f", one_of_each(), {"a": "b"})
    assert (tmp_path / "f").read_bytes() == file.getvalue()
    with open(tmp_path / "x.npy", "wb") as out:
        tn.save(out, tn.arange(3))
    with open(tmp_path / "x.npy", "rb") as out:
        assert tn.load(out).tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="load: a BytesIO is empty"):
        tn.load(io.BytesIO())
    with pytest.raises(TypeError, match="load: a StringIO was opened as text"):
        tn.load(io.StringIO("text"))


def test_files_of_the_safetensors_package():
    """`others.safetensors` was written by safetensors 0.8 from PyTorch's tensors."""
    loaded, metadata = tn.load(DATA / "others.safetensors", return_metadata=True)
    assert metadata == {"format": "pt"}
    want = {
        "BOOL": tn.array([True, False]), "I64": tn.array([-(2**62), 1]),
        "U8": tn.array([0, 255], dtype=tn.uint8), "F64": tn.array([0.1, -1e300], dtype=tn.float64),
        "F16": tn.array([1.5, -2.0], dtype=tn.float16),
        "BF16": tn.array([1.5, -3e38], dtype=tn.bfloat16),
        "F8_E4M3": tn.array([448.0, -0.5]).astype(tn.float8_e4m3),
        "F8_E5M2": tn.array([57344.0, -0.5]).astype(tn.float8_e5m2),
        "C64": tn.array([1 + 2j, -1j], dtype=tn.complex64),
        "matrix": tn.arange(6, dtype=tn.float32).reshape(2, 3),
        "scalar": tn.array(7, dtype=tn.int32), "nothing": tn.zeros((3, 0)),
    }  # fmt: skip
    same(loaded, {name: want[name] for name in loaded} | {n: want[n] for n in want - loaded.keys()})


def test_the_safetensors_package_reads_our_files(tmp_path):
    package = pytest.importorskip("safetensors")
    numpy_has = {n: x for n, x in one_of_each().items() if not n.startswith(("float8", "bfloat"))}
    tn.save_safetensors(tmp_path / "f", one_of_each(), {"format": "pt"})
    with package.safe_open(tmp_path / "f", "np") as file:
        assert set(file.keys()) == set(one_of_each()) and file.metadata()["format"] == "pt"
        for name, tensor in numpy_has.items():
            np.testing.assert_array_equal(file.get_tensor(name), tensor.numpy(), strict=True)


def test_values_that_are_no_tensors_become_some(tmp_path):
    tn.save_safetensors(tmp_path / "f", {"a": np.ones(2, np.float32), "b": 3, "c": [1.0, 2.0]})
    same(tn.load(tmp_path / "f"), {"a": tn.ones(2), "b": tn.array(3), "c": tn.array([1.0, 2.0])})


@pytest.mark.parametrize(
    "tensors, metadata, error",
    [
        ([1], None, "tensors by name are a dict, not list"),
        ({3: tn.ones(2)}, None, "names: a string is needed, not 3 (int)"),
        ({"a": {"b": tn.ones(2)}}, None, "'a' is not a tensor but a dict"),
        ({"a": None}, None, "'a' is not a tensor but a NoneType"),
        ({"a": tn.ones(2)}, {"step": 3}, "metadata: a string is needed, not 3 (int)"),
        ({"a": tn.ones(2).astype(tn.complex128)}, None, "safetensors has no c128"),
        ({"\udc80": tn.ones(2)}, None, r"names: not valid UTF-8: '\udc80'"),
        ({"a": tn.ones(2)}, {"note": "\udc80"}, r"metadata: not valid UTF-8: '\udc80'"),
        ({"__metadata__": tn.ones(2)}, None, "the name '__metadata__' is reserved"),
    ],
)
def test_what_safetensors_cannot_hold(tmp_path, tensors, metadata, error):
    with pytest.raises(tn.Error, match=re.escape(error)) as raised:
        tn.save_safetensors(tmp_path / "f", tensors, metadata)
    assert f"{__file__}:" in str(raised.value)
    assert os.listdir(tmp_path) == []


def test_loading_maps_the_file(tmp_path):
    path = tmp_path / "large.safetensors"
    large = {"x": tn.zeros(16 << 20), "y": tn.ones(3)}
    tn.save_safetensors(path, large)
    before = tn.memory.active_memory()
    loaded = tn.load(path)
    assert loaded["y"].tolist() == [1, 1, 1]
    assert not loaded["x"].numpy().flags.writeable
    assert tn.memory.active_memory() - before < 1 << 20  # mapped memory is not ours


def test_changing_what_was_loaded_and_saving_it_to_the_same_file(tmp_path):
    path = tmp_path / "f.safetensors"
    tn.save_safetensors(path, {"x": tn.arange(300_000, dtype=tn.float32)})
    state = tn.load(path)
    kept = tn.load(path)["x"]

    @lambda f: tn.compile(f, inputs=state, outputs=state)
    def step():
        state["x"] = state["x"] + 1

    step()  # may not write into the mapped file
    state["x"][0] = 100
    tn.save_safetensors(path, state)
    step()
    assert tn.load(path)["x"][:3].tolist() == [100, 2, 3]
    assert kept[:3].tolist() == [0, 1, 2] and kept[-1].item() == 299_999
    assert os.listdir(tmp_path) == ["f.safetensors"]


def test_results_do_not_take_the_memory_of_a_file(tmp_path):
    tn.save_safetensors(tmp_path / "f", {"x": tn.zeros(300_000)})
    tn.save(tmp_path / "x", tn.zeros(300_000))
    for x in (tn.load(tmp_path / "f").popitem()[1], tn.load(tmp_path / "x.npy")):
        for _ in range(3):  # the only handle: its memory would be free for the result
            x = x + 1
            tn.eval(x)
        assert x[-1].item() == 3
        assert tn.load(tmp_path / "x.npy")[-1].item() == 0


@pytest.mark.parametrize("save", ["safetensors", "npz", "npy"])
def test_cut_and_flipped_files(tmp_path, save):
    path = tmp_path / "f"
    if save == "safetensors":
        tn.save_safetensors(path, one_of_each(), {"a": "b"})
    elif save == "npz":
        path = path.with_suffix(".npz")
        tn.savez_compressed(path, x=tn.arange(50), y=tn.ones((3, 4)))
    else:
        path = path.with_suffix(".npy")
        tn.save(path, tn.arange(50))
    content = path.read_bytes()
    generator = random.Random(0)
    for _ in range(60):
        path.write_bytes(content[: generator.randrange(len(content))])
        with pytest.raises(tn.Error, match=re.escape(str(path))):
            tn.load(path)
    for _ in range(120):
        bit = generator.randrange(8 * len(content))
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        if save == "npy":  # which has no checksum
            try:
                tn.eval(tn.load(path))
            except tn.Error as error:
                assert str(path) in str(error)
        else:
            with pytest.raises(tn.Error, match=re.escape(str(path))):
                tn.load(path)


@pytest.mark.parametrize("save", [tn.savez, tn.savez_compressed])
def test_every_flipped_bit_of_an_npz_is_found(save):
    file = io.BytesIO()
    save(file, x=tn.arange(3), y=tn.ones((1, 2)))
    content = file.getvalue()
    with np.load(io.BytesIO(content)) as arrays:  # other libraries see nothing of it
        assert arrays["x"].tolist() == [0, 1, 2]
    for bit in range(8 * len(content)):
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        with pytest.raises(tn.Error):
            tn.load(io.BytesIO(flipped))


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_flipped_bits_of_an_npz_of_numpy_change_nothing_in_silence(save):
    """Its arrays have checksums; what stands around them has none."""
    file = io.BytesIO()
    save(file, x=np.arange(3), ünß=np.ones((1, 2)), z=np.zeros(()))
    content = file.getvalue()
    expected = tn.load(io.BytesIO(content), verify=True)
    found = 0
    for bit in range(8 * len(content)):
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        try:
            got = tn.load(io.BytesIO(flipped), verify=True)
        except tn.Error:
            found += 1
        else:
            same(got, expected)
    assert found > 4 * len(content)


def saved_again(name, path):
    """A file of ours as another program writes it, which keeps the checksum of the old one."""
    if name == "a.npz":
        tn.savez(path, x=tn.ones(4))
        with zipfile.ZipFile(path, "a") as archive:
            with io.BytesIO() as member:
                np.save(member, np.zeros(2))
                archive.writestr("y.npy", member.getvalue())
        return
    tn.save_safetensors(path, {"x": tn.ones(4)}, {"made": "by hand"})
    content = path.read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.dumps(json.loads(content[8:start])).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header + content[start:])


@pytest.mark.parametrize("name", ["a.safetensors", "a.npz"])
def test_files_that_another_program_saved_again(tmp_path, name):
    path = tmp_path / name
    saved_again(name, path)
    hint = r"its checksum does not match\n(.|\n)*another program(.|\n)*verify=False"
    with pytest.raises(ValueError, match=hint):
        tn.load(path)
    assert tn.load(path, verify=False)["x"].tolist() == [1] * 4


def test_verify(tmp_path):
    with_sum, without = tmp_path / "a.safetensors", tmp_path / "b.safetensors"
    tn.save_safetensors(with_sum, {"x": tn.ones(100)})
    header = b'{"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
    without.write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))
    tn.save(tmp_path / "c.npy", tn.ones(2))
    np.savez(tmp_path / "d.npz", x=np.ones(2))
    same(tn.load(with_sum, verify=True), {"x": tn.ones(100)})
    assert tn.load(tmp_path / "d.npz", verify=True)["x"].tolist() == [1, 1]  # members have one
    for path in (without, tmp_path / "c.npy"):
        tn.load(path)
        with pytest.raises(ValueError, match="has no checksum to verify"):
            tn.load(path, verify=True)
    with pytest.raises(ValueError, match="has no checksum to verify"):
        tn.load_safetensors(without, verify=True)
    content = bytearray(with_sum.read_bytes())
    content[-1] ^= 1
    with_sum.write_bytes(content)
    for verify in (None, True):
        with pytest.raises(ValueError, match="a.safetensors is damaged: its checksum"):
            tn.load(with_sum, verify=verify)
        with pytest.raises(ValueError, match="a.safetensors is damaged: its checksum"):
            nn.Linear(1, 1).load_weights(with_sum, verify=verify)
    assert tn.load(with_sum, verify=False)["x"].shape == (100,)
    with pytest.raises(ValueError, match="verify=True is for files"):
        nn.Linear(1, 1).load_weights({}, verify=True)


def test_weights_with_flipped_bits_are_refused(tmp_path):
    model = nn.Linear(8, 4)
    for name in ("w.safetensors", "w.npz"):
        path = tmp_path / name
        model.save_weights(path)
        content = path.read_bytes()
        generator = random.Random(1)
        for _ in range(100):
            flipped = bytearray(content)
            flipped[generator.randrange(len(content))] ^= 1 << generator.randrange(8)
            path.write_bytes(flipped)
            with pytest.raises(tn.Error):
                model.load_weights(path)


# npy and npz ----------------------------------------------------------------------------------


def test_npy(tmp_path):
    for name, tensor in one_of_each().items():
        if name == "float8_e5m2":
            continue
        tn.save(tmp_path / name, tensor)
        same({"x": tn.load(tmp_path / f"{name}.npy")}, {"x": tensor})
        read = np.load(tmp_path / f"{name}.npy")
        raw = {"bfloat16": "V2", "float8_e4m3": "V1"}
        assert read.shape == tensor.shape and read.dtype == raw.get(name, tensor.numpy().dtype)
    with pytest.raises(ValueError, match="save: NumPy has no float8_e5m2\n.*\n.*save_safetensors"):
        tn.save(tmp_path / "f", one_of_each()["float8_e5m2"])


@pytest.mark.parametrize("savez", [tn.savez, tn.savez_compressed])
def test_npz(tmp_path, savez):
    tensors = {"w": tn.arange(1000).reshape(10, 100), "b": tn.ones(3, dtype=tn.bfloat16)}
    savez(tmp_path / "f")
    assert tn.load(tmp_path / "f.npz") == {}
    tensors["file"] = tn.ones(1)  # a name that is also a parameter's
    savez(tmp_path / "f", tn.zeros(2), **tensors)
    same(tn.load(tmp_path / "f.npz"), {"arr_0": tn.zeros(2), **tensors})
    read = np.load(tmp_path / "f.npz")
    assert read.files == ["arr_0", "w", "b", "file"] and read["w"].sum() == 999 * 500
    first = (tmp_path / "f.npz").read_bytes()
    savez(tmp_path / "f.npz", tn.zeros(2), **tensors)
    assert (tmp_path / "f.npz").read_bytes() == first
    assert os.listdir(tmp_path) == ["f.npz"]
    with pytest.raises(ValueError, match="'arr_0' is the name of a positional tensor"):
        savez(tmp_path / "g", tn.ones(2), arr_0=tn.ones(2))


def test_what_numpy_writes(tmp_path):
    arrays = {
        "columns": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "other_order": np.arange(3, dtype=">i4"),
        "scalar": np.float32(3), "nothing": np.zeros((0, 2)), "yes": np.array([True, False]),
    }  # fmt: skip
    np.savez(tmp_path / "all.npz", **arrays)
    loaded = tn.load(tmp_path / "all.npz")
    for name, array in arrays.items():
        np.save(tmp_path / name, array)
        for tensor in (tn.load(tmp_path / f"{name}.npy"), loaded[name]):
            np.testing.assert_array_equal(tensor.numpy(), array)


def test_npz_files_that_cannot_be_read(tmp_path):
    path = tmp_path / "f.npz"
    np.savez(path, names=np.array(["a", "b"]))
    with pytest.raises(ValueError, match="f.npz: 'names': elements of type <U1 have no tensors"):
        tn.load(path)
    np.savez(path, things=np.array([{}], dtype=object))
    with pytest.raises(ValueError, match="f.npz: 'things': Object arrays cannot be loaded"):
        tn.load(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("note.txt", "no array")
    with pytest.raises(ValueError, match="f.npz: 'note.txt': "):
        tn.load(path)
    with zipfile.ZipFile(path, "w") as archive, pytest.warns(UserWarning):
        for _ in range(2):
            with archive.open("x.npy", "w") as out:
                np.lib.format.write_array(out, np.ones(2))
    with pytest.raises(ValueError, match="it has 'x' twice"):
        tn.load(path)


# Any file -------------------------------------------------------------------------------------


def test_files_that_are_not_there(tmp_path):
    for read in (tn.load, tn.load_safetensors, nn.Linear(1, 1).load_weights):
        with pytest.raises(FileNotFoundError, match="cannot open .*missing") as raised:
            read(tmp_path / "missing.safetensors")
        assert isinstance(raised.value, tn.Error) and f"{__file__}:" in str(raised.value)
    with pytest.raises(ValueError, match="is a directory without model.safetensors"):
        tn.load(tmp_path)
    with pytest.raises(TypeError, match=r"load: not a path: 3 \(int\)"):
        tn.load(3)
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(ValueError, match="fifo is not a regular file"):
        tn.load(tmp_path / "fifo")


def test_folders_that_cannot_be_written(tmp_path):
    for save in (tn.save, tn.savez, lambda path, x: tn.save_safetensors(path, {"x": x})):
        with pytest.raises(tn.Error, match="cannot write .*no/f") as raised:
            save(tmp_path / "no" / "f", tn.ones(2))
        assert f"{__file__}:" in str(raised.value)


def test_a_disk_that_is_full_keeps_the_old_file(tmp_path):
    saves = {
        "f.safetensors": lambda path, x: tn.save_safetensors(path, {"x": x}),
        "f.npz": lambda path, x: tn.savez(path, x=x),
        "f.npy": tn.save,
    }
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    for name, save in saves.items():
        save(tmp_path / name, tn.ones(3))
        content = (tmp_path / name).read_bytes()
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
        try:
            with pytest.raises(tn.Error, match=f"cannot write .*{name}: File too large"):
                save(tmp_path / name, tn.ones(100_000))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert (tmp_path / name).read_bytes() == content
    assert sorted(os.listdir(tmp_path)) == sorted(saves)


def test_values_inside_a_traced_function_cannot_be_saved(tmp_path):
    def f(x):
        tn.save_safetensors(tmp_path / "f", {"x": x})
        return x

    with pytest.raises(tn.Error, match="compile"):
        tn.compile(f)(tn.ones(2))
    assert os.listdir(tmp_path) == []


def test_pickles_are_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "model.pt", "w") as archive:
        archive.writestr("model/data.pkl", b"\x80\x02}q\x00.")
    (tmp_path / "old.bin").write_bytes(b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.")
    for name in ("model.pt", "old.bin"):
        with pytest.raises(ValueError, match=f"{name} is a pickle of PyTorch, which can run code"):
            tn.load(tmp_path / name)


@pytest.mark.parametrize("length", [0x7B, 0x7B20, 0x10280, 0x44B50])  # "{", " {", pickle, "PK"
def test_lengths_that_look_like_other_files(tmp_path, length):
    path = tmp_path / "f"
    header = b'{"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}'.ljust(length)
    path.write_bytes(length.to_bytes(8, "little") + header + b"\7")
    assert tn.load(path)["x"].item() == tn.load(io.BytesIO(path.read_bytes()))["x"].item() == 7


def shards(folder, weight_map, **tensors):
    for file in set(weight_map.values()):
        held = {n: tensors[n] for n, f in weight_map.items() if f == file and n in tensors}
        tn.save_safetensors(folder / os.path.basename(file), held)
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": weight_map}))
    return index


def test_checkpoints_in_several_files(tmp_path):
    tensors = {"a": tn.ones(2), "b": tn.zeros(3), "c": tn.arange(2)}
    places = {"a": "1.safetensors", "b": "2.safetensors", "c": "1.safetensors"}
    index = shards(tmp_path, places, **tensors)
    for source in (index, tmp_path):
        same(dict(sorted(tn.load(source).items())), tensors)
    shards(tmp_path, {"a": "1.safetensors", "d": "1.safetensors"}, **tensors)
    with pytest.raises(ValueError, match="1.safetensors has no 'd', which .*index.json lists"):
        tn.load(index)
    shards(tmp_path, {"a": "../1.safetensors"}, **tensors)
    with pytest.raises(ValueError, match="not the name of a file beside it: '../1.safetensors'"):
        tn.load(index)
    for text in ("{}", '{"weight_map": 3}', '{"weight_map": {"a": 3}}', "{", '{"a": ' * 9999):
        index.write_text(text)
        with pytest.raises(ValueError, match="index.json"):
            tn.load(index)


@pytest.mark.parametrize("module", [files], ids=lambda m: m.__name__)
def test_examples_in_the_documentation(module):
    assert doctest.testmod(module, extraglobs={"tn": tn}).failed == 0


def npy_without_padding(array):
    """As the format allows: the header has the length of its text."""
    header = str({"descr": array.dtype.str, "fortran_order": False, "shape": array.shape}) + "\n"
    return b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header.encode() + array.tobytes()


@pytest.mark.parametrize("dtype", ["<f4", "<f8", "<c16", "|u1", "<i2", "|V2", ">i4"])
def test_npy_without_padding(tmp_path, dtype):
    array = np.arange(6, dtype="<i2").astype(dtype) if dtype != "|V2" else np.zeros(6, "V2")
    for fill in range(9):
        content = npy_without_padding(array).replace(b"}\n", b"}" + b" " * fill + b"\n")
        length = content.index(b"\n") + 1 - 10
        content = content[:8] + length.to_bytes(2, "little") + content[10:]
        path = tmp_path / "x.npy"
        path.write_bytes(content)
        for loaded in (tn.load(path), tn.load(io.BytesIO(content))):
            assert loaded.shape == (6,)
            if dtype != "|V2":
                assert np.array_equal(loaded.numpy(), array)


def test_a_small_npz_that_inflates_to_much_is_refused(tmp_path):
    path = tmp_path / "bomb.npz"
    header = b"{'descr': '|u1', 'fortran_order': False, 'shape': (%d,)}\n" % (2 << 30)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open("x.npy", "w") as member:
            member.write(b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header)
            member.write(bytes(1 << 20))
    content = bytearray(path.read_bytes())
    directory = content.rindex(b"PK\1\2")
    content[directory + 24 : directory + 28] = (0x7FFFFFFF).to_bytes(4, "little")  # what it says
    path.write_bytes(content)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ValueError, match="inflates from .* to 2147483647 bytes") as refused:
        tn.load(path)
    assert "max_bytes=2147483647" in str(refused.value)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1 << 19  # KiB
    tn.savez_compressed(tmp_path / "zeros.npz", x=tn.zeros(1 << 20))
    with pytest.raises(ValueError, match="and 1000 is the most"):
        tn.load(tmp_path / "zeros.npz", max_bytes=1000)
    assert tn.load(tmp_path / "zeros.npz", max_bytes=5 << 20)["x"].shape == (1 << 20,)


def test_an_npz_whose_header_promises_more_than_its_member_has(tmp_path):
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (%d,)}\n" % 10**14
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        start = b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header
        archive.writestr("x.npy", start + bytes(80))
    with pytest.raises(ValueError, match="cannot read .*x.npz: 'x': .* elements of 8 bytes in"):
        tn.load(tmp_path / "x.npz")


def test_a_tensor_that_looks_like_the_comment_of_an_archive(tmp_path):
    from tenon.files import _NO_SUM

    tn.savez(tmp_path / "x.npz", x=tn.array(np.frombuffer(_NO_SUM, np.uint8)))
    assert bytes(tn.load(tmp_path / "x.npz")["x"].numpy()) == _NO_SUM


@pytest.mark.parametrize("shape", [(3,), (1, 3), ()])
def test_truth_values_of_arrays_are_checked(tmp_path, shape):
    array = np.full(shape, 7, np.uint8).view(bool)
    np.save(tmp_path / "x.npy", array)
    np.savez(tmp_path / "x.npz", x=array)
    for name in ("x.npy", "x.npz"):
        with pytest.raises(tn.Error, match="other than 0 and 1"):
            tn.load(tmp_path / name)
    np.save(tmp_path / "fine.npy", np.asfortranarray([[True, False], [False, False]]))
    assert tn.load(tmp_path / "fine.npy").tolist() == [[True, False], [False, False]]


@pytest.mark.parametrize("kept", [8, 20, 130, 400])
def test_an_array_that_is_cut_off_says_so(tmp_path, kept):
    path = tmp_path / "x.npy"
    np.save(path, np.arange(100.0))
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(tn.Error, match="x.npy: it is cut off"):
        tn.load(path)


def test_a_missing_folder_is_told_as_python_does(tmp_path):
    with pytest.raises(FileNotFoundError, match="cannot write"):
        tn.save_safetensors(tmp_path / "none" / "x.safetensors", {"a": tn.ones(1)})
    with pytest.raises(FileNotFoundError, match="cannot write"):
        tn.nn.Linear(1, 1).save_weights(tmp_path / "none" / "x.safetensors")
    with pytest.raises(FileNotFoundError, match="cannot write"):
        tn.save(tmp_path / "none" / "x.npy", tn.ones(1))
    with pytest.raises(tn.InvalidValue, match="is a directory"):
        tn.save_safetensors(tmp_path, {"a": tn.ones(1)})
