"""OpenStack Swift as an S3 server on loopback: its account, container, object and proxy servers in one process, s3api and tempauth before them.

Settings are JSON in the first argument: `folder` (on a file system with extended attributes), `accessKey` (`account:user`, as tempauth
has it), `secretKey`, `bucket`, which is made, and `minPartBytes`. Anybody may read the bucket at `/v1/AUTH_<account>/<bucket>/`, without
the S3 interface. Prints one line of JSON with the port when it answers; ends when its standard input does.
"""
import json
import logging
import os
import sys

import eventlet
import eventlet.wsgi

eventlet.monkey_patch()

from swift.account import server as account_server  # noqa: E402
from swift.common.middleware import copy, dlo, gatekeeper, listing_formats, slo, tempauth  # noqa: E402
from swift.common.middleware.s3api import s3api  # noqa: E402
from swift.common import utils  # noqa: E402
from swift.common.ring import RingBuilder  # noqa: E402
from swift.common.swob import Request  # noqa: E402
from swift.common.utils import mkdirs  # noqa: E402
from swift.container import server as container_server  # noqa: E402
from swift.obj import server as object_server  # noqa: E402
from swift.proxy import server as proxy_server  # noqa: E402

settings = json.loads(sys.argv[1])
folder = settings['folder']
swift_dir = os.path.join(folder, 'etc')
devices = os.path.join(folder, 'disks')
mkdirs(swift_dir)
mkdirs(os.path.join(devices, 'sda', 'tmp'))
logging.disable(logging.CRITICAL)

# what /etc/swift/swift.conf would say
utils.HASH_PATH_SUFFIX = utils.HASH_PATH_PREFIX = b'svc'
utils.validate_hash_conf = lambda: None

listeners = {kind: eventlet.listen(('127.0.0.1', 0)) for kind in ('account', 'container', 'object', 'proxy')}
for kind, port in ((kind, listener.getsockname()[1]) for kind, listener in listeners.items()):
    if kind == 'proxy':
        continue
    builder = RingBuilder(4, 1, 1)
    builder.add_dev({'id': 0, 'region': 1, 'zone': 1, 'weight': 1, 'ip': '127.0.0.1', 'port': port, 'device': 'sda'})
    builder.rebalance()
    builder.get_ring().save(os.path.join(swift_dir, kind + '.ring.gz'))

conf = {
    'devices': devices,
    'swift_dir': swift_dir,
    'mount_check': 'false',
    'allow_account_management': 'true',
    'account_autocreate': 'true',
    'node_timeout': '60',
    'conn_timeout': '20',
    # what has been written is listed at once, also on a busy machine
    'container_update_timeout': '60',
    'log_level': 'CRITICAL',
    'fallocate_reserve': '0',
}
secret = settings['secretKey']
user = 'user_' + settings['accessKey'].replace(':', '_')


def serve(kind, app):
    eventlet.spawn(eventlet.wsgi.server, listeners[kind], app, log=open(os.devnull, 'w'), log_output=False, keepalive=True)


serve('account', account_server.AccountController(conf))
serve('container', container_server.ContainerController(conf))
serve('object', object_server.ObjectController(conf))



class Cache:
    """What memcached would be: s3api keeps there what it knows of buckets."""

    def __init__(self, app):
        self.app, self.items = app, {}

    def __call__(self, env, start_response):
        env['swift.cache'] = self
        return self.app(env, start_response)

    def get(self, key, *_args, **_more):
        return self.items.get(key)

    def set(self, key, value, *_args, **_more):
        self.items[key] = value

    def delete(self, key, *_args, **_more):
        self.items.pop(key, None)


app = proxy = Cache(proxy_server.Application(conf))
pipeline = [
    (lambda _conf, **_more: Cache, {}),
    (gatekeeper.filter_factory, {}),
    (listing_formats.filter_factory, {}),
    (
        s3api.filter_factory,
        {
            'min_segment_size': str(settings['minPartBytes']),
            'max_upload_part_num': '10000',
            'location': 'us-east-1',
            'auth_pipeline_check': 'false',
        },
    ),
    (tempauth.filter_factory, {user: secret + ' .admin'}),
    (copy.filter_factory, {}),
    (slo.filter_factory, {'min_segment_size': '1', 'rate_limit_after_segment': '10000'}),
    (dlo.filter_factory, {'rate_limit_after_segment': '10000'}),
]
for factory, more in reversed(pipeline):
    app = factory({**conf, **more}, **more)(app)
serve('proxy', app)

container = f"/v1/AUTH_{settings['accessKey'].split(':')[0]}/{settings['bucket']}"
made = Request.blank(
    container, method='PUT', environ={'swift_owner': True}, headers={'X-Container-Read': '.r:*'}
).get_response(proxy)
if made.status_int // 100 != 2:
    sys.exit('the bucket cannot be made: ' + made.status)

print(json.dumps({'port': listeners['proxy'].getsockname()[1]}), flush=True)
eventlet.tpool.execute(sys.stdin.read)
os._exit(0)
