"""A libtorrent session driven by JSON lines on stdin; answers and events as JSON lines on stdout.

Commands:
  {"cmd": "make", "path": folder-or-file, "piece": bytes, "out": file.torrent, "trackers": [], "webseeds": []}
  {"cmd": "add", "id": name, "torrent": file | "magnet": uri, "save": folder, "seed": bool, "check": bool, "peers": [[host, port]], "webseeds": []}
  {"cmd": "peer", "id": name, "host": h, "port": p}
  {"cmd": "info", "id": name}      -> progress, peers
  {"cmd": "flush", "id": name}     -> flushed; `finished` only says that the hashes are right, blocks may be on their way to the file
  {"cmd": "remove", "id": name}
  {"cmd": "quit"}
Settings come as JSON in argv[1]; "fast": true begins with its own preset for fast seeds; "defaults": true leaves libtorrent's defaults (uTP, encryption) on; "blocks": true tells of the first block
(`first-block`), at the price of two alerts for each: a benchmark of speed does without.
"""
import json
import sys
import threading
import time

import libtorrent as lt


def out(**message):
    sys.stdout.write(json.dumps(message) + '\n')
    sys.stdout.flush()


def make(command):
    fs = lt.file_storage()
    lt.add_files(fs, command['path'])
    creator = lt.create_torrent(fs, command.get('piece', 0), flags=lt.create_torrent.v2_only)
    for tracker in command.get('trackers', []):
        creator.add_tracker(tracker)
    for url in command.get('webseeds', []):
        creator.add_url_seed(url)
    import os
    lt.set_piece_hashes(creator, os.path.dirname(command['path']))
    with open(command['out'], 'wb') as file:
        file.write(lt.bencode(creator.generate()))
    info = lt.torrent_info(command['out'])
    out(event='made', infohash=str(info.info_hashes().v2), pieces=info.num_pieces(), pieceLength=info.piece_length())


def main():
    options = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}
    category = lt.alert.category_t
    # Logs of every message cost more than the transfer itself.
    mask = category.all_categories if options.get('verbose') else (
        category.error_notification | category.status_notification | category.storage_notification | category.peer_notification
        | category.connect_notification | (category.block_progress_notification if options.get('blocks') else 0))
    settings = {
        'listen_interfaces': options.get('listen', '127.0.0.1:0'), 'enable_lsd': False, 'enable_upnp': False, 'enable_natpmp': False,
        'enable_dht': bool(options.get('dht')), 'alert_mask': mask, 'user_agent': 'lt',
        'allow_multiple_connections_per_ip': True, 'dht_bootstrap_nodes': '', 'ban_web_seeds': True,
        'min_reconnect_time': 1, 'peer_connect_timeout': 5, 'urlseed_wait_retry': 1,
    }
    if not options.get('defaults'):
        settings.update({
            'enable_outgoing_utp': False, 'enable_incoming_utp': False, 'in_enc_policy': 2, 'out_enc_policy': 2,
        })
    if options.get('fast'):
        settings = {**lt.high_performance_seed(), **settings}
    settings.update(options.get('settings', {}))
    session = lt.session(settings)
    torrents = {}
    names = {}
    started = {}
    quitting = threading.Event()

    def events():
        first = set()
        dialled = {}
        while not quitting.is_set():
            # wait_for_alert hands out an alert that the queue may move meanwhile: it crashed.
            time.sleep(0.01)
            for alert in session.pop_alerts():
                kind = type(alert).__name__
                handle = getattr(alert, 'handle', None)
                name = names.get(str(handle.info_hashes().v2)) if handle is not None and handle.is_valid() else None
                if kind == 'torrent_finished_alert':
                    now = time.monotonic()
                    out(event='finished', id=name, seconds=now - started.get(name, 0), sinceDial=now - dialled.get(name, now))
                elif kind == 'torrent_checked_alert':
                    out(event='checked', id=name)
                elif kind == 'metadata_received_alert':
                    out(event='metadata', id=name)
                elif kind == 'torrent_error_alert' or kind == 'file_error_alert':
                    out(event='error', id=name, message=alert.message())
                elif kind == 'hash_failed_alert':
                    out(event='hash-failed', id=name, message=alert.message())
                elif kind == 'peer_connect_alert' and name not in dialled:
                    dialled[name] = time.monotonic()
                elif kind == 'block_finished_alert' and name not in first:
                    first.add(name)
                    now = time.monotonic()
                    out(event='first-block', id=name, seconds=now - started.get(name, 0), sinceDial=now - dialled.get(name, now))
                elif kind == 'cache_flushed_alert':
                    out(event='flushed', id=name)
                elif kind == 'peer_ban_alert':
                    out(event='ban', id=name, message=alert.message())
                elif options.get('verbose'):
                    out(event='log', message=kind + ': ' + alert.message())

    thread = threading.Thread(target=events)
    thread.start()
    while session.listen_port() == 0:
        time.sleep(0.01)
    out(event='ready', port=session.listen_port(), version=lt.version)
    for line in sys.stdin:
        command = json.loads(line)
        kind = command['cmd']
        if kind == 'make':
            make(command)
        elif kind == 'add':
            if 'magnet' in command:
                parameters = lt.parse_magnet_uri(command['magnet'])
            else:
                parameters = lt.add_torrent_params()
                parameters.ti = lt.torrent_info(command['torrent'])
            parameters.save_path = command['save']
            flags = lt.torrent_flags
            parameters.flags &= ~(flags.auto_managed | flags.paused | flags.duplicate_is_error)
            # Seed mode trusts the files at first and hashes each piece when it is first asked for; without it they are checked
            # when the torrent is added, and `checked` tells that this is over.
            if command.get('seed') and not command.get('check'):
                parameters.flags |= flags.seed_mode
            if command.get('webseeds'):
                parameters.url_seeds = command['webseeds']
            started[command['id']] = time.monotonic()
            names[str(parameters.info_hashes.v2 if 'magnet' in command else parameters.ti.info_hashes().v2)] = command['id']
            handle = session.add_torrent(parameters)
            torrents[command['id']] = handle
            for host, port in command.get('peers', []):
                handle.connect_peer((host, port))
            out(event='added', id=command['id'])
        elif kind == 'peer':
            torrents[command['id']].connect_peer((command['host'], command['port']))
        elif kind == 'info':
            status = torrents[command['id']].status()
            out(event='info', id=command['id'], progress=status.progress, state=str(status.state), seeding=status.is_seeding,
                done=status.total_wanted_done, rate=status.download_payload_rate,
                peers=[{'ip': list(peer.ip), 'client': peer.client.decode('utf-8', 'replace'), 'flags': peer.flags}
                       for peer in torrents[command['id']].get_peer_info()])
        elif kind == 'flush':
            torrents[command['id']].flush_cache()
        elif kind == 'remove':
            session.remove_torrent(torrents.pop(command['id']))
        elif kind == 'dht-node':
            session.add_dht_node((command['host'], command['port']))
        elif kind == 'usage':
            import resource
            usage = resource.getrusage(resource.RUSAGE_SELF)
            out(event='usage', cpuSeconds=usage.ru_utime + usage.ru_stime, maxRssBytes=usage.ru_maxrss * 1024)
        elif kind == 'quit':
            break
    quitting.set()
    thread.join()
    del session


main()
