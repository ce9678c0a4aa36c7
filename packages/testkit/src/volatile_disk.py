# A disk with a volatile write cache, as an nbdkit plugin: `nbdkit python volatile_disk.py image=FILE seed=N`.
# Writes stay in memory until a flush or a write with FUA, and reads see them. Once the file `<image>.cut` exists the power is
# gone: of the writes not flushed a random part, torn at sectors, reaches the image, in any order; then every request fails.
import errno
import os
import random

import nbdkit

API_VERSION = 2
SECTOR = 4096

image = None
seed = 0
fd = -1
pending = []
dead = False
lost_bytes = 0


def config(key, value):
    global image, seed
    if key == 'image':
        image = value
    elif key == 'seed':
        seed = int(value)
    else:
        raise RuntimeError('unknown parameter ' + key)


def get_ready():
    global fd
    fd = os.open(image, os.O_RDWR)


def thread_model():
    return nbdkit.THREAD_MODEL_SERIALIZE_ALL_REQUESTS


def open(readonly):
    return 1


def get_size(h):
    return os.fstat(fd).st_size


def can_fua(h):
    return nbdkit.FUA_NATIVE


def can_flush(h):
    return True


def cut():
    global dead, lost_bytes
    dead = True
    draw = random.Random(seed)
    kept = [write for write in pending if draw.random() < 0.5]
    draw.shuffle(kept)
    for offset, data in kept:
        # Torn: a multi-sector write may have stopped anywhere.
        sectors = max(1, (len(data) + SECTOR - 1) // SECTOR)
        whole = draw.random() < 0.7
        end = len(data) if whole else draw.randrange(sectors) * SECTOR
        os.pwrite(fd, data[:end], offset)
    with os.fdopen(os.open(image + '.lost', os.O_WRONLY | os.O_CREAT, 0o600), 'w') as report:
        report.write(str(sum(len(data) for _, data in pending)))


def check():
    if not dead and os.path.exists(image + '.cut'):
        cut()
    if dead:
        nbdkit.set_error(errno.EIO)
        raise RuntimeError('the power is gone')


def settle():
    for offset, data in pending:
        os.pwrite(fd, data, offset)
    pending.clear()


def pread(h, buf, offset, flags):
    check()
    count = len(buf)
    data = bytearray(os.pread(fd, count, offset))
    data.extend(b'\0' * (count - len(data)))
    for start, written in pending:
        low, high = max(start, offset), min(start + len(written), offset + count)
        if low < high:
            data[low - offset:high - offset] = written[low - start:high - start]
    buf[:] = data


def pwrite(h, buf, offset, flags):
    check()
    pending.append((offset, bytes(buf)))
    if flags & nbdkit.FLAG_FUA:
        settle()


def flush(h, flags):
    check()
    settle()
