import { isPublicAddress, parseCompact } from '@svc/internal-net'
import { BencodeDictionary, type BencodeValue, decodeBencode, type Encodable, encodeBencode } from '@svc/metainfo'

/** Limit of a DHT datagram. Ordinary ones have a few hundred bytes; larger ones would be fragmented. */
const MAX_BYTES = 2_048
const MAX_DEPTH = 4
const MAX_TOKENS = 512
const ID_BYTES = 20
const NODE_BYTES = 26
const MAX_NODES = 32
const MAX_VALUES = 200
/** Peers and nodes of one answer of ours. */
const MAX_ANSWERED_VALUES = 25
const MAX_ANSWERED_NODES = 8
/** A value in compact form, with its length. */
const VALUE_BYTES = 8
const MAX_TOKEN_BYTES = 64
const MAX_TRANSACTION_BYTES = 16

/**
 * Parses a datagram of the DHT (BEP 5) and writes it again from the validated fields: type, length and range of each
 * field that the library reads, and no others. Undefined for anything else, which is dropped. Only the four queries of
 * BEP 5 pass: nothing is stored for strangers (BEP 44).
 *
 * @param allowPrivate whether nodes and peers may have private addresses: in a DHT that is private itself.
 */
export function checkKrpc(datagram: Uint8Array, allowPrivate: boolean): Uint8Array | undefined {
  let message: BencodeValue
  try {
    message = decodeBencode(datagram, {
      maxBytes: MAX_BYTES,
      maxDepth: MAX_DEPTH,
      maxTokens: MAX_TOKENS,
      allowUnsorted: true
    })
  } catch {
    return undefined
  }
  if (!(message instanceof BencodeDictionary)) return undefined
  const t = bytes(message.get('t'), 1, MAX_TRANSACTION_BYTES)
  if (t === undefined) return undefined
  const checked = bodyOf(message, allowPrivate)
  return checked && encodeBencode({ ...checked, t })
}

/** The library's answer with at most 25 peers and 8 nodes, or as many as fit; undefined if it is too long without any. */
export function fitAnswer(answer: Uint8Array, lessThanBytes: number): Uint8Array | undefined {
  const message = decodeBencode(answer, { allowUnsorted: true }) as BencodeDictionary
  const result = message.get('r')
  if (!(result instanceof BencodeDictionary)) return answer.length < lessThanBytes ? answer : undefined
  const [t, id, token] = [message.get('t'), result.get('id'), result.get('token')]
  const values = (result.get('values') as readonly Uint8Array[] | undefined)?.slice(0, MAX_ANSWERED_VALUES)
  // the nearest come first
  const nodes = (result.get('nodes') as Uint8Array | undefined)?.subarray(0, NODE_BYTES * MAX_ANSWERED_NODES)
  const shorter = (bytes: number): Uint8Array =>
    encodeBencode({
      t,
      y: 'r',
      r: {
        id,
        token,
        nodes: nodes?.subarray(0, Math.max(0, nodes.length - Math.ceil(bytes / NODE_BYTES) * NODE_BYTES)),
        values: values?.slice(0, Math.max(0, values.length - Math.ceil(bytes / VALUE_BYTES)))
      }
    } as Encodable)
  const whole = shorter(0)
  if (whole.length < lessThanBytes) return whole
  const fitting = shorter(whole.length - lessThanBytes + 1)
  return fitting.length < lessThanBytes ? fitting : undefined
}

type Body = Readonly<Record<string, Encodable>>

function bodyOf(message: BencodeDictionary, allowPrivate: boolean): Body | undefined {
  switch (text(message.get('y'))) {
    case 'q': {
      const q = text(message.get('q'))
      const fields = message.get('a')
      const a = q !== undefined && fields instanceof BencodeDictionary && argumentsOf(q, fields)
      return a ? { y: 'q', q, a } : undefined
    }
    case 'r': {
      const fields = message.get('r')
      const r = fields instanceof BencodeDictionary && resultOf(fields, allowPrivate)
      return r ? { y: 'r', r } : undefined
    }
    case 'e': {
      const e = message.get('e')
      if (!Array.isArray(e) || typeof e[0] !== 'number') return undefined
      return { y: 'e', e: [e[0], bytes(e[1], 0, 256) ?? ''] }
    }
    default:
      return undefined
  }
}

function argumentsOf(query: string, fields: BencodeDictionary): Body | undefined {
  const id = exactly(fields.get('id'), ID_BYTES)
  if (id === undefined) return undefined
  switch (query) {
    case 'ping':
      return { id }
    case 'find_node': {
      const target = exactly(fields.get('target'), ID_BYTES)
      return target && { id, target }
    }
    case 'get_peers': {
      const infohash = exactly(fields.get('info_hash'), ID_BYTES)
      return infohash && { id, info_hash: infohash }
    }
    case 'announce_peer': {
      const infohash = exactly(fields.get('info_hash'), ID_BYTES)
      const token = bytes(fields.get('token'), 1, MAX_TOKEN_BYTES)
      const implied = fields.get('implied_port') === 1
      const port = fields.get('port')
      if (infohash === undefined || token === undefined) return undefined
      if (implied) return { id, info_hash: infohash, token, implied_port: 1 }
      if (typeof port !== 'number' || port < 1 || port > 65_535) return undefined
      return { id, info_hash: infohash, token, port }
    }
    default:
      return undefined
  }
}

function resultOf(fields: BencodeDictionary, allowPrivate: boolean): Body | undefined {
  const id = exactly(fields.get('id'), ID_BYTES)
  if (id === undefined) return undefined
  const result: Record<string, Encodable> = { id }
  if (fields.has('token')) {
    const token = bytes(fields.get('token'), 1, MAX_TOKEN_BYTES)
    if (token === undefined) return undefined
    result.token = token
  }
  if (fields.has('nodes')) {
    const nodes = bytes(fields.get('nodes'), 0, NODE_BYTES * MAX_NODES)
    if (nodes === undefined || nodes.length % NODE_BYTES !== 0) return undefined
    result.nodes = Buffer.concat(
      chunks(nodes, NODE_BYTES).filter((node) => mayBeNamed(node.subarray(ID_BYTES), allowPrivate))
    )
  }
  if (fields.has('values')) {
    const values = fields.get('values')
    if (!Array.isArray(values) || values.length > MAX_VALUES) return undefined
    // those of 18 bytes are IPv6, which the library does not support.
    result.values = (values as readonly BencodeValue[])
      .map((value) => exactly(value, 6))
      .filter((value) => value !== undefined && mayBeNamed(value, allowPrivate)) as Uint8Array[]
  }
  return result
}

/** A compact address with a port that a stranger may direct us to. */
function mayBeNamed(compact: Uint8Array, allowPrivate: boolean): boolean {
  const address = parseCompact(compact, 4)[0]
  return address !== undefined && (allowPrivate || isPublicAddress(address.host))
}

function bytes(value: BencodeValue | undefined, min: number, max: number): Uint8Array | undefined {
  return value instanceof Uint8Array && value.length >= min && value.length <= max ? value : undefined
}

const exactly = (value: BencodeValue | undefined, length: number): Uint8Array | undefined =>
  bytes(value, length, length)

const text = (value: BencodeValue | undefined): string | undefined =>
  value instanceof Uint8Array && value.length <= 16 ? Buffer.from(value).toString('latin1') : undefined

function chunks(all: Uint8Array, length: number): Uint8Array[] {
  return Array.from({ length: all.length / length }, (_, index) => all.subarray(index * length, (index + 1) * length))
}
