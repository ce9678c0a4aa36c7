"""What libtorrent makes of files and .torrent bytes. One JSON request per line on stdin, one JSON answer per line.

{"create": folder, "pieceLength": n}  ->  {"infohash", "infoHex", "layers": {rootHex: layerHex}, "roots": {path: rootHex}}
{"load": torrentHex}                  ->  {"infohash", "name", "files"} or {"error"}
{"magnet": text}                      ->  {"infohash", "name", "trackers", "webseeds"} or {"error"}
"""
import json
import os
import sys

import libtorrent as lt


def create(folder, piece_length):
    storage = lt.file_storage()
    lt.add_files(storage, folder)
    torrent = lt.create_torrent(storage, piece_length, lt.create_torrent.v2_only)
    lt.set_piece_hashes(torrent, os.path.dirname(folder))
    entry = torrent.generate()
    roots = {}

    def walk(tree, prefix):
        for name, node in tree.items():
            path = prefix + [name.decode('utf-8')]
            if b'' in node:
                root = node[b''].get(b'pieces root')
                roots['/'.join(path)] = root.hex() if root is not None else None
            else:
                walk(node, path)

    walk(entry[b'info'][b'file tree'], [])
    info = lt.bencode(entry[b'info'])
    loaded = lt.torrent_info(lt.bencode(entry))
    layers = {root.hex(): layer.hex() for root, layer in entry.get(b'piece layers', {}).items()}
    return {'infohash': str(loaded.info_hashes().v2), 'infoHex': info.hex(), 'layers': layers, 'roots': roots}


def load(data):
    info = lt.torrent_info(data)
    files = info.files()
    pad = lt.file_flags_t.flag_pad_file
    return {
        'infohash': str(info.info_hashes().v2) if info.info_hashes().has_v2() else None,
        'name': info.name(),
        'files': [[files.file_path(i), files.file_size(i), str(files.root(i))] for i in range(info.num_files())
                  if not files.file_flags(i) & pad],
    }


def magnet(text):
    parameters = lt.parse_magnet_uri(text)
    return {
        'infohash': str(parameters.info_hashes.v2) if parameters.info_hashes.has_v2() else None,
        'name': parameters.name, 'trackers': parameters.trackers, 'webseeds': parameters.url_seeds,
    }


for line in sys.stdin:
    request = json.loads(line)
    try:
        if 'create' in request:
            answer = create(request['create'], request['pieceLength'])
        elif 'magnet' in request:
            answer = magnet(request['magnet'])
        else:
            answer = load(bytes.fromhex(request['load']))
    except RuntimeError as error:
        answer = {'error': str(error)}
    print(json.dumps(answer), flush=True)
