/** One row of docs/budgets.md, without its area. In `limit` stands `{file#name}` for the constant of that name in the file of that name. */
export interface LimitRow {
  readonly what: string
  readonly limit: string
  /** Whom it holds for. */
  readonly per: string
  readonly beyond: string
  /** Base names of the tests that exceed it. */
  readonly tests: string
}

const rows = (text: string): LimitRow[] =>
  text
    .trim()
    .split('\n')
    .map((line) => {
      const [what = '', limit = '', per = '', beyond = '', tests = ''] = line.split(' | ').map((cell) => cell.trim())
      return { what, limit, per, beyond, tests }
    })

/** The limits on everybody but the owner, by area. */
export const LIMITS: Readonly<Record<string, readonly LimitRow[]>> = {
  peers: rows(`
connections | {swarm#maxConnections}, a quarter of them for outgoing ones | engine | one without a handshake after {swarm#HANDSHAKE_GRACE_MS}, then the least useful peer, makes room | budgets.faults places connection-budget
connections | {swarm#maxConnectionsPerHost} | host or IPv6 /64 | closed | budgets.faults places
connections | {swarm#maxPeersPerTorrent} | torrent | the least useful peer makes room | budgets.faults many.faults
dials in progress | {peer-set#MAX_HALF_OPEN}, each {peer-set#DIAL_TIMEOUT_MS} | torrent | wait | budgets.faults
handshake | {swarm#HANDSHAKE_TIMEOUT_MS} | connection | closed | hostile-peers budgets.faults
encryption handshakes | {swarm#ENCRYPTION_HANDSHAKES_PER_SECOND.total}/s; {swarm#ENCRYPTION_HANDSHAKES_PER_SECOND.each}/s per host | engine | closed | message-floods budgets.faults
idleness | {peer-set#INDIFFERENT_MS}; {peer-set#WAITING_MS} if interested | connection | makes room for others | connection-budget places
silence | {torrent#SILENCE_MS} | connection | closed | budgets.faults
remembered addresses | {peer-book#MAX_ADDRESSES} | torrent | the worst are forgotten | peer-book
long work, reading from peers included | {loop-budget#TURN_MS} for all of it | turn of the event loop | waits in order of arrival | loop-budget transport message-floods
extended handshakes | {peer#MAX_EXTENDED_HANDSHAKES} | connection | closed | message-floods
message | {messages#MAX_UNKNOWN_BYTES}, less by kind | message | closed before it is buffered | decoder hostile-peers
unrequested blocks | {peer#UNSOLICITED_BYTES} | connection | closed | hostile-peers
refused requests in a row | {refusals#MAX_IN_A_ROW} | connection | not asked for {refusals#FIRST_PAUSE_MS}, doubling to {refusals#MAX_PAUSE_MS} | hostile-peers
receive memory | {swarm#RECEIVE_BYTES|bytes} | engine | requests pause | piece-buffer
metadata | {messages#MAX_METADATA_BYTES} from {metadata-phase#MAX_ATTEMPTS} peers, {metadata-phase#TIMEOUT_MS} of silence | torrent | the next peer is asked | hostile-peers
upload slots | {swarm#uploadSlots}; a turn is {choker#QUOTA_BYTES}, {choker#TURN_MS} or {choker#IDLE_MS} idle | torrent | the longest waiting is next | budgets.faults places upload
queued requests | {extensions#OUR_REQUEST_QUEUE}; {peer#MAX_REQUESTS_WHILE_CHOKED} while choked | connection | rejected, then closed | hostile-peers
blocks read for a peer | {frame#FRAME_BLOCK_BYTES} in flight | connection | wait | stalled-readers
unsent bytes | {torrent#MAX_UNREAD_BYTES}; {torrent#STALL_MS} without progress | connection | not read; closed | budgets.faults hostile-peers
waiting hash and metadata requests | {reply-queue#MAX_WAITING}; {reply-queue#MAX_UNREAD_BYTES} unread | connection | rejected | hash-requests budgets.faults
rejected hash and metadata requests | {swarm#REJECTS_PER_SECOND.each}/s per host; {swarm#REJECTS_PER_SECOND.total}/s | engine | closed | hash-floods.faults hash-requests
hashes computed for requests | {hash-work#HASHES_PER_SECOND}/s; a block read counts {hash-server#BLOCK_COST} | engine | wait | hash-work hash-requests
kept hash trees | {hash-work#TREE_BYTES} | engine | the least recently used is dropped | hash-work
a piece with a wrong block | {hash-fetch#LEAVES_SILENCE_MS} per peer asked for hashes, {leeching#LEAVES_TIMEOUT_MS} in total; then one peer alone for {downloader#PAROLE_MS}, doubling | piece | the liar is banned | poisoners
connections from a host with {banned-peers#MAX_BANNED_OF_NETWORK} banned peers | one per {banned-peers#PAUSE_MS}, doubling to {banned-peers#MAX_PAUSE_MS} | torrent | closed | banned-peers
upload limit | as configured, including hashes, metadata and webseed | engine, torrent | waits | hash-requests upload
peer exchange | {extensions#MAX_PEX_PEERS} addresses, one message per {pex#MIN_INTERVAL_MS} | connection | ignored; closed after {pex#MAX_IGNORED} | budgets.faults
uTP answers | {utp-responder#MAX_RESETS_PER_SECOND}/s | engine | not answered | budgets.faults
`),
  DHT: rows(`
datagram | {krpc#MAX_BYTES}, {krpc#MAX_DEPTH} levels, {krpc#MAX_TOKENS} values | datagram | dropped | hostile-dht
datagrams | {checked-socket#perAddress}/s; {checked-socket#total}/s of unsolicited ones | address; node | dropped | checked-socket
answer | {checked-socket#MAX_AMPLIFICATION} times its query, {krpc#MAX_ANSWERED_VALUES} peers, {krpc#MAX_ANSWERED_NODES} nodes | query | shortened, or not sent | amplification
own queries | {checked-socket#ownPerNode} to a node, {checked-socket#own}/s; {checked-socket#MAX_WAITING} waiting | node | wait; fail | checked-socket
lookups without results | again after {dht#FIRST_RETRY_MS}, doubling to {dht#REANNOUNCE_MS} | torrent | wait | dht
`),
  trackers: rows(`
failed announces | again after {tracker#FIRST_RETRY_MS}, doubling to {tracker#DEFAULT_INTERVAL_MS} | tracker | wait | trackers
answer | {http-announce#MAX_ANSWER_BYTES}, {http-announce#MAX_REDIRECTS} redirects | announce | cut | trackers
`),
  'peers (v1)': rows(`
message | {wire-bounds#MAX_MESSAGE_BYTES}, less by kind | connection | closed at its header | hostile-peer wire-bounds
failed piece | {blame#MAX_TURN_MS} for one peer, next turn after {blame#PASSED_MS} | piece | another peer's turn | blame
incoming connections | {incoming#MAX_INCOMING}; {incoming#perHost} per host | thread | closed; the oldest useless one makes room | incoming hostile-peer
remembered addresses | {torrent#MAX_ADDRESSES} | torrent | forgotten | addresses.faults wire-bounds
`),
  threads: rows(`
hanging thread | 30 s; heap {supervised-thread#MAX_HEAP_MIB} | thread | ended, counted, restarted | supervised-thread threads.faults hanging-thread.faults
`),
  HTTP: rows(`
connections | {server#maxConnections} on the socket, {guarded-listener#MAX_CONNECTIONS} per port | listener | closed | budgets.faults http-hostile
connections of one host | all, while no other host connects | port | the host with the most loses one | host-shares connection-shares
connections of one user of this machine | as one host; {connection-shares#MAX_GUESTS} more until the user is known | port | the idlest goes | host-shares connection-shares
connections to \`svc ui\` | {bridge#MAX_STRANGERS}, one answer each; {bridge#MAX_CONNECTIONS} more with a session | command | the oldest goes | bridge
requests in progress | 1 | connection | the next waits, unread | connection webseed-listener
pipelined requests started | as long work | turn of the event loop | wait | connection
waiting requests | {connection#MAX_WAITING_REQUESTS} | listener | connections with more than {connection#FAIR_WAITING_REQUESTS} are closed | connection
request header | {server#maxHeaderBytes}, {server#maxHeaders} fields, {server#headersTimeoutMs} | request | 431, 408 | budgets.faults http-hostile connection
request body | 1 MiB (adopt 32 MiB), {json#JSON_BOUNDS.depth} levels, {server#requestTimeoutMs} | request | 413, 400, 408 | budgets.faults http-hostile json
silence | {server#idleTimeoutMs}; {server#keepAliveTimeoutMs} between requests | connection | closed | budgets.faults connection
reader of a blob | {blob-pump#SLOW_READER_TIMEOUT_MS} per chunk; {blob-pump#BUFFERS} chunks of {buffer-pool#CHUNK_BYTES} | response | closed | budgets.faults connection slow-readers.faults
`),
  jobs: rows(`
open jobs | {registry#OPEN_LIMITS.jobs}; {registry#OPEN_LIMITS.files} listed files | daemon | 503 | jobs
ended jobs | {retention#KEPT_JOBS}, and those of {retention#MIN_KEPT_MS}; {retention#MAX_KEPT_JOBS} | daemon | the earliest ended is dropped | jobs
`),
  imports: rows(`
listed files | {walk#MAX_FILES} | request | 400 | many-files.faults
registry document | {document#MAX_DOCUMENT_BYTES}, {document#MAX_ENTRIES} entries, {document#BOUNDS.values} values, {document#BOUNDS.depth} levels; complete in {registry-client#DOCUMENT_MS} | answer | the import fails | registry registry-client
document in canonical form | {canonical#MAX_DOCUMENT_BYTES}, {canonical#BOUNDS.values} values, {canonical#BOUNDS.keys} different keys, {canonical#BOUNDS.depth} levels; above {document-thread#SHORT_DOCUMENT_BYTES} in a thread, {document-thread#LIMIT_MS} | document | refused before it is parsed | strangers-documents canonical
other JSON of strangers | {json#JSON_BOUNDS.values} values, {json#JSON_BOUNDS.keys} different keys, {json#JSON_BOUNDS.depth} levels, unless stated otherwise | answer | refused before it is parsed | json strangers-documents
page of a hub's listing | {limits#jsonBytes}, {documents#PAGE.values} values | answer | the import fails | listing strangers-documents
bencoding | {bencode#MAX_TOKENS} values and keys | document | refused | strangers-documents
registry token | {registry-login#MAX_TOKEN_BYTES} | answer | the import fails | registry
slow source (hub, registry) | {min-rate#MIN_BYTES_PER_SECOND}/s over each {min-rate#SLOW_MS}; six tries without progress | range, blob | fails; its lane is freed | download registry-client min-rate.faults
catalog listing | {provider#MAX_LISTING_BYTES}, {listing#MAX_LINES} lines, parsed as long work | answer | the rest is not read | listing
catalog record | {provider#MAX_RECORD_BYTES}, {digest-list#MAX_LINES} lines | answer | refused | listing
`),
  webseeds: rows(`
range | {webseed#MAX_RANGE_BYTES}, {webseed#IDLE_MS} of silence | webseed | abandoned, then a pause | webseed
pinned manifest | {canonical#MAX_DOCUMENT_BYTES}, {pinned-manifest#TOTAL_TIMEOUT_MS} | request | the next source is asked | webseed-keys
key file | {webseed-keys#MAX_FILE_BYTES} | file | refused | webseed-keys
`),
  publish: rows(`
object store | {bucket#MAX_ATTEMPTS} tries, {bucket#STALL_MS} of silence; answers {answers#MAX_ANSWER_BYTES}, {bucket#MAX_PAGES} pages | call | a specific error code; the next call continues | hostile-s3.slow
`),
  mirrors: rows(`
list of paths | {form#MAX_BODY_BYTES}, {form#MAX_PATHS} paths | request | 400 before it is parsed | form mirror
known repositories | {hub-revisions#MAX_BYTES} of names, {rendered#MAX_BYTES} of answers | mirror | rebuilt | rendered mirror
views made; files hashed | {served-files#MADE_AT_ONCE}, {git-names#HASHED_AT_ONCE} at a time | mirrors | wait | git-names
reads on demand (lookups, small files) | {demand#READS.atOnce} at a time, {demand#READS.maxWaiting} waiting | mirrors | 429; a host with fewer displaces one with the most | lookups host-queue small-on-demand.faults
cached hub lookups | {lookups#MAX_KNOWN_BYTES} and {lookups#MAX_ABSENT} absent ones for {lookups#KNOWN_MS} | hub mirror | looked up again | lookups
listing on demand | {plan#MAX_TEXT_BYTES}, {stranger-listing#MAX_KEPT_FILES} model files; heap {pool#STRANGERS_HEAP_MIB} | thread | absent; the thread restarts | long-listings.slow long-listings.faults
jobs for clients | {demand-jobs#MAX_JOBS} at a time, turns of {demand-jobs#TURN_MS}; {demand-jobs#GRACE_MS} without a client | mirrors | 429; ended, kept | demand-jobs mirror-on-demand
bytes on demand | [mirror] on_demand_bytes, {keys#DEFAULT_DAY_BYTES|bytes} | 24 hours | 507 | mirror-on-demand oci-arriving.slow strangers
small files on demand | {hub-demand#MAX_SMALL_BYTES} each, and in memory | hub mirror | imported; read again | small-on-demand.faults
headers on demand | {hub-demand#ANSWER_MS} (manifests at the OCI mirror {swarm-demand#HOLD_MS}) | request | 429, for weights the headers of a response that waits | mirror-on-demand oci-arriving.slow
waiting clients | {demand#MAX_WAITING} | mirrors | 429; a host with fewer displaces one with the most | oci-arriving.slow oci-clients.faults
`),
  metrics: rows(`
collections | one per {metrics-listener#FRESH_MS} | port | shared | metrics
`)
}
