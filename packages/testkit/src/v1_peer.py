"""A BitTorrent v1 peer for tests: libtorrent, TCP only, on 127.0.0.1.

argv: JSON {mode: seed|leech|make, folder, name, piece_length, torrent, trackers, peers, upload_limit}
Prints one JSON line when it listens, one a second with its state, and ends when standard input does.
"""
import base64, json, os, select, sys
sys.path.pop(0)  # modules of the system only, whatever lies beside this file
import libtorrent as lt

args = json.loads(sys.argv[1])
session = lt.session({
    'listen_interfaces': '127.0.0.1:0',
    'enable_dht': False, 'enable_lsd': False, 'enable_upnp': False, 'enable_natpmp': False,
    'enable_incoming_utp': False, 'enable_outgoing_utp': False,
    'allow_multiple_connections_per_ip': True,
    'announce_to_all_trackers': True,
    'alert_mask': 0,
})

def say(**what):
    print(json.dumps(what), flush=True)

if args['mode'] in ('seed', 'make'):
    storage = lt.file_storage()
    lt.add_files(storage, os.path.join(args['folder'], args['name']))
    flags = lt.create_torrent.v1_only if hasattr(lt.create_torrent, 'v1_only') else 64
    torrent = lt.create_torrent(storage, piece_size=args.get('piece_length', 16384), flags=flags)
    for url in args.get('trackers', []):
        torrent.add_tracker(url)
    lt.set_piece_hashes(torrent, args['folder'])
    metainfo = lt.bencode(torrent.generate())
    info = lt.torrent_info(metainfo)
else:
    info = lt.torrent_info(base64.b64decode(args['torrent']))

params = lt.add_torrent_params()
params.ti = info
params.save_path = args['folder']
params.flags &= ~(lt.torrent_flags.auto_managed | lt.torrent_flags.paused)
handle = session.add_torrent(params)
if args.get('upload_limit'):
    handle.set_upload_limit(args['upload_limit'])
for peer in args.get('peers', []):
    host, port = peer.rsplit(':', 1)
    handle.connect_peer((host, int(port)))

out = {'port': session.listen_port(), 'infohash': str(info.info_hash())}
if args['mode'] != 'leech':
    out['torrent'] = base64.b64encode(metainfo).decode()
say(**out)
while True:
    ready, _, _ = select.select([sys.stdin], [], [], 0.2)
    if ready and not sys.stdin.readline():
        break
    status = handle.status()
    say(progress=status.progress, seeding=status.is_seeding, uploaded=status.total_payload_upload,
        downloaded=status.total_payload_download, peers=status.num_peers, rate=status.download_payload_rate)
