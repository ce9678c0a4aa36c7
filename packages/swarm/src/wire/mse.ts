import { Buffer } from 'node:buffer'
import { createHash, randomBytes } from 'node:crypto'
import { SwarmError } from '../errors.ts'
import type { ByteScript, IncomingBytes } from './byte-script.ts'
import { Rc4 } from './rc4.ts'

// Message stream encryption ("MSE/PE", no BEP): each side of the handshake is a generator that goes on when there are more bytes.

const PRIME = BigInt(
  '0xFFFFFFFFFFFFFFFFC90FDAA22168C234C4C6628B80DC1CD129024E088A67CC74020BBEA63B139B22514A08798E3404DD' +
    'EF9519B3CD3A431B302B0A6DF25F14374FE1356D6D51C245E485B576625E7EC6F44C42E9A63A36210000000000090563'
)
const KEY_BYTES = 96
const PAD_BYTES = 512
const PLAIN = 1
const RC4 = 2

function sha1(...parts: (Uint8Array | string)[]): Buffer {
  const hash = createHash('sha1')
  for (const part of parts) hash.update(part)
  return hash.digest()
}

/** The key by which a responder looks up torrents: HASH('req2', infohash). */
export const mseKeyOf = (infohash: Uint8Array): string => sha1('req2', infohash).toString('latin1')

const xor = (a: Uint8Array, b: Uint8Array): Buffer => Buffer.from(a.map((byte, at) => byte ^ b[at]!))

function power(base: bigint, exponent: bigint): bigint {
  let result = 1n
  let square = base % PRIME
  for (let left = exponent; left > 0n; left >>= 1n) {
    if ((left & 1n) === 1n) result = (result * square) % PRIME
    square = (square * square) % PRIME
  }
  return result
}

const toBytes = (value: bigint): Buffer => Buffer.from(value.toString(16).padStart(2 * KEY_BYTES, '0'), 'hex')

/** Diffie-Hellman by bigints: `node:crypto` tests the prime each time (measured: 8 ms and more per handshake against 0.5). */
class KeyExchange {
  readonly #exponent = BigInt(`0x${randomBytes(20).toString('hex')}`)

  publicKey(): Buffer {
    return toBytes(power(2n, this.#exponent))
  }

  secret(theirs: Uint8Array): Buffer {
    const key = BigInt(`0x${Buffer.from(theirs).toString('hex')}`)
    if (key < 2n || key > PRIME - 2n) throw violation('an unusable key')
    return toBytes(power(key, this.#exponent))
  }
}

/** The result of an encryption handshake: ciphers for the stream, or none when plaintext was selected. */
export interface MseResult {
  readonly encrypt?: Rc4
  readonly decrypt?: Rc4
  /** Decrypted bytes of the stream that arrived with the handshake. */
  readonly rest: Uint8Array
}

type Send = (bytes: Uint8Array) => void

const violation = (message: string): SwarmError =>
  new SwarmError('E_PROTOCOL', 'encryption', `encryption handshake: ${message}`)

/** Skips padding, and the mark that ends it. */
function* skipTo(incoming: IncomingBytes, mark: Uint8Array): ByteScript<void> {
  while (incoming.held.indexOf(mark) < 0) {
    if (incoming.held.length > PAD_BYTES + mark.length) throw violation('no synchronization mark')
    yield
  }
  yield* incoming.take(incoming.held.indexOf(mark) + mark.length)
}

/** A decrypted copy. */
const opened = (cipher: Rc4, bytes: Uint8Array): Buffer => Buffer.from(cipher.apply(Buffer.from(bytes)))
const padding = (): Buffer => randomBytes(Math.floor(Math.random() * 64))

/**
 * Answers an encryption handshake: selects plaintext if it is offered, else RC4. Holds about 1.2 KB at most.
 * @param infohashByKey gives the torrent's 20-byte infohash for its {@link mseKeyOf}
 * @throws SwarmError `E_PROTOCOL`
 */
export function* respondMse(
  incoming: IncomingBytes,
  send: Send,
  infohashByKey: (key: string) => Uint8Array | undefined
): ByteScript<MseResult> {
  const theirs = yield* incoming.take(KEY_BYTES)
  const exchange = new KeyExchange()
  const secret = exchange.secret(theirs)
  send(Buffer.concat([exchange.publicKey(), padding()]))
  yield* skipTo(incoming, sha1('req1', secret))
  const key = xor(yield* incoming.take(20), sha1('req3', secret)).toString('latin1')
  const infohash = infohashByKey(key)
  if (infohash === undefined) throw violation('an unknown torrent')
  const decrypt = new Rc4(sha1('keyA', secret, infohash))
  const encrypt = new Rc4(sha1('keyB', secret, infohash))
  const offer = opened(decrypt, yield* incoming.take(14))
  if (offer.readUInt32BE(0) !== 0 || offer.readUInt32BE(4) !== 0) throw violation('wrong verification constant')
  const provide = offer.readUInt32BE(8)
  const padBytes = offer.readUInt16BE(12)
  if (padBytes > PAD_BYTES) throw violation('too much padding')
  opened(decrypt, yield* incoming.take(padBytes))
  const initialBytes = opened(decrypt, yield* incoming.take(2)).readUInt16BE(0)
  if (initialBytes > 1024) throw violation('too much initial payload')
  const initial = opened(decrypt, yield* incoming.take(initialBytes))
  const select = (provide & PLAIN) !== 0 ? PLAIN : provide & RC4
  if (select === 0) throw violation('no known method offered')
  const answer = Buffer.alloc(14)
  answer.writeUInt32BE(select, 8)
  send(encrypt.apply(answer))
  if (select === RC4) return { encrypt, decrypt, rest: Buffer.concat([initial, opened(decrypt, incoming.takeAll())]) }
  // bytes after the initial payload would use the selected method, which the peer cannot know before our answer, so
  // in practice there are none.
  if (incoming.held.length > 0) throw violation('data before the method was selected')
  return { rest: initial }
}

/** Opens an encryption handshake to a peer that refuses plain connections; offers both methods. @throws SwarmError `E_PROTOCOL` */
export function* initiateMse(incoming: IncomingBytes, send: Send, infohash: Uint8Array): ByteScript<MseResult> {
  const exchange = new KeyExchange()
  send(Buffer.concat([exchange.publicKey(), padding()]))
  const secret = exchange.secret(yield* incoming.take(KEY_BYTES))
  const encrypt = new Rc4(sha1('keyA', secret, infohash))
  const decrypt = new Rc4(sha1('keyB', secret, infohash))
  const offer = Buffer.alloc(16)
  offer.writeUInt32BE(PLAIN | RC4, 8)
  send(Buffer.concat([sha1('req1', secret), xor(sha1('req2', infohash), sha1('req3', secret)), encrypt.apply(offer)]))
  // the encrypted verification constant is the first 8 bytes of their key stream.
  yield* skipTo(incoming, decrypt.apply(Buffer.alloc(8)))
  const answer = opened(decrypt, yield* incoming.take(6))
  const select = answer.readUInt32BE(0)
  const padBytes = answer.readUInt16BE(4)
  if (select !== PLAIN && select !== RC4) throw violation('an unknown method was selected')
  if (padBytes > PAD_BYTES) throw violation('too much padding')
  opened(decrypt, yield* incoming.take(padBytes))
  if (select === PLAIN) return { rest: incoming.takeAll() }
  return { encrypt, decrypt, rest: opened(decrypt, incoming.takeAll()) }
}
