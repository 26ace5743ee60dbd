"""Tests of failures that several files have: messages of calls, damaged files of executables."""

import pytest

import tenon as tn


def errors_test(cases):
    """A test for each pair of a call and a text that is in the message of its error."""

    @pytest.mark.parametrize("call, text", cases, ids=map(str, range(len(cases))))
    def test(call, text):
        with pytest.raises(tn.Error) as error:
            call()
        assert text in str(error.value)

    return test


def damage(path, content, place, bits=1):
    """Writes a file with the bits of one byte flipped."""
    flipped = bytearray(content)
    flipped[place] ^= bits
    path.write_bytes(flipped)


def check_that_damage_is_found(path, x, load=tn.Executable.load, called="the checksum"):
    """Weights of an executable that are read when it is called are verified then, every time."""
    with pytest.raises(ValueError, match=f"{path.name} is damaged: the checksum of section"):
        load(path, verify=True)
    loaded = load(path)
    for _ in range(2):
        with pytest.raises(ValueError, match=called):
            loaded(x)
    copy = path.with_name("laundered.tnx")
    with pytest.raises(ValueError, match=f"{path.name} is damaged: the checksum"):
        loaded.save(copy)
    assert not copy.exists()
    tn.Executable.load(path, verify=False)(x)
