# A disk that keeps a log of what was written to it, as an nbdkit plugin: `nbdkit python recording_disk.py image=FILE log=FILE`.
# The log is a sequence of records: the kind as a byte (W a write, F a flush), offset (8 bytes) and length (4 bytes), little-endian,
# and the bytes of a write. A record is in the log before the request is answered. block-log.ts reads it.
import os
import struct

import nbdkit

API_VERSION = 2
HEAD = struct.Struct('<cQI')

paths = {}
fd = -1
log = -1


def config(key, value):
    if key not in ('image', 'log'):
        raise RuntimeError('unknown parameter ' + key)
    paths[key] = value


def get_ready():
    global fd, log
    fd = os.open(paths['image'], os.O_RDWR)
    log = os.open(paths['log'], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)


def thread_model():
    return nbdkit.THREAD_MODEL_SERIALIZE_ALL_REQUESTS


def open(readonly):
    return 1


def get_size(h):
    return os.fstat(fd).st_size


def can_flush(h):
    return True


def pread(h, buf, offset, flags):
    data = os.pread(fd, len(buf), offset)
    buf[:] = data + b'\0' * (len(buf) - len(data))


def record(parts):
    size = sum(len(part) for part in parts)
    if os.writev(log, parts) != size:
        raise RuntimeError('the log is full')


def pwrite(h, buf, offset, flags):
    data = bytes(buf)
    os.pwrite(fd, data, offset)
    record([HEAD.pack(b'W', offset, len(data)), data])


def flush(h, flags):
    record([HEAD.pack(b'F', 0, 0)])
