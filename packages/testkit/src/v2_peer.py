"""libtorrent as BitTorrent v2 peer for tests, on 127.0.0.1, TCP only, driven by JSON lines on standard input.

argv: JSON of session settings to change. Every command carries "n" and gets one line {"n": ..., ...} back:
  {"cmd": "make", "path": folder, "piece": bytes, "out": file}   a v2-only torrent of a folder
  {"cmd": "inspect", "torrent": file}                            what libtorrent reads in a torrent file
  {"cmd": "add", "torrent": file | "magnet": uri, "save": folder, "seed": bool, "peers": ["host:port"], "webseeds": [url]}
  {"cmd": "status"}                                              of the torrent last added
  {"cmd": "add-dht-node", "port": port}
Ends with standard input.
"""
import base64
import json
import os
import sys
import time

import libtorrent as lt

settings = {
    'listen_interfaces': '127.0.0.1:0', 'enable_lsd': False, 'enable_upnp': False, 'enable_natpmp': False, 'enable_dht': False,
    'enable_outgoing_utp': False, 'enable_incoming_utp': False, 'in_enc_policy': 2, 'out_enc_policy': 2,
    'allow_multiple_connections_per_ip': True, 'dht_bootstrap_nodes': '', 'announce_to_all_trackers': True, 'alert_mask': 0,
    'min_reconnect_time': 1, 'urlseed_wait_retry': 1, 'rate_limit_ip_overhead': False,
}
settings.update(json.loads(sys.argv[1]) if len(sys.argv) > 1 else {})
session = lt.session(settings)
handle = None


def make(command):
    storage = lt.file_storage()
    lt.add_files(storage, command['path'])
    creator = lt.create_torrent(storage, command['piece'], flags=lt.create_torrent.v2_only)
    lt.set_piece_hashes(creator, os.path.dirname(command['path']))
    with open(command['out'], 'wb') as file:
        file.write(lt.bencode(creator.generate()))
    return inspect({'torrent': command['out']})


def inspect(command):
    with open(command['torrent'], 'rb') as file:
        bytes_ = file.read()
    info = lt.torrent_info(lt.bdecode(bytes_))
    layers = lt.bdecode(bytes_).get(b'piece layers', {})
    files = info.files()
    return {
        'infohash': str(info.info_hashes().v2), 'name': info.name(), 'pieceLength': info.piece_length(), 'valid': info.is_valid(),
        'layers': {root.hex(): base64.b64encode(layer).decode() for root, layer in layers.items()},
        'files': [files.file_path(i) for i in range(files.num_files())],
        'webseeds': [seed['url'] for seed in info.web_seeds()],
    }


def add(command):
    global handle
    if 'magnet' in command:
        parameters = lt.parse_magnet_uri(command['magnet'])
    else:
        parameters = lt.add_torrent_params()
        parameters.ti = lt.torrent_info(command['torrent'])
    parameters.save_path = command['save']
    flags = lt.torrent_flags
    parameters.flags &= ~(flags.auto_managed | flags.paused)
    if command.get('seed'):
        parameters.flags |= flags.seed_mode
    if 'webseeds' in command:
        parameters.url_seeds = command['webseeds']
    handle = session.add_torrent(parameters)
    for peer in command.get('peers', []):
        host, port = peer.rsplit(':', 1)
        handle.connect_peer((host, int(port)))
    return {}


def status(_command):
    now = handle.status()
    return {'seeding': now.is_seeding, 'done': now.total_wanted_done, 'uploaded': now.total_payload_upload,
            'downloaded': now.total_payload_download, 'peers': now.num_peers, 'state': str(now.state),
            'error': now.errc.message() if now.errc.value() else None}


def add_dht_node(command):
    session.add_dht_node(('127.0.0.1', command['port']))
    return {}


COMMANDS = {'make': make, 'inspect': inspect, 'add': add, 'status': status, 'add-dht-node': add_dht_node}

while session.listen_port() == 0:
    time.sleep(0.01)
print(json.dumps({'n': 0, 'port': session.listen_port()}), flush=True)
for line in sys.stdin:
    request = json.loads(line)
    try:
        answer = COMMANDS[request['cmd']](request)
    except Exception as error:
        answer = {'failed': str(error)}
    print(json.dumps({'n': request['n'], **answer}), flush=True)
