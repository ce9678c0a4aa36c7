"""Asks llama.cpp's own code where a model of the hub lies in a cache, as `-hf REPO:QUANT --offline` does: no network is used.

Usage: llama_hf.py LIBRARY REF...; prints a path for each reference, or an empty line."""
import ctypes
import sys


class CxxString(ctypes.Structure):
    """A std::string of libstdc++."""

    _fields_ = [('data', ctypes.c_void_p), ('size', ctypes.c_size_t), ('local', ctypes.c_char * 16)]


def string_of(text):
    data = text.encode()
    buffer = ctypes.create_string_buffer(data)
    string = CxxString(ctypes.addressof(buffer), len(data), b'')
    string.buffer = buffer
    return string


# std::string common_download_resolve_path(const std::string & hf_repo_with_tag, const std::string & hf_file)
resolve = getattr(
    ctypes.CDLL(sys.argv[1]),
    '_Z28common_download_resolve_pathRKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEES6_',
)
resolve.restype = None
resolve.argtypes = [ctypes.c_void_p] * 3
if ctypes.sizeof(CxxString) != 32:
    sys.exit('std::string has another size here')
for ref in sys.argv[2:]:
    # the result lives in memory of the caller, whose address is the first argument
    found, repo, file = CxxString(), string_of(ref), string_of('')
    resolve(ctypes.byref(found), ctypes.byref(repo), ctypes.byref(file))
    print(ctypes.string_at(found.data, found.size).decode())
