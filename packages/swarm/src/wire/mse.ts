import { Buffer } from 'node:buffer'
import { createHash, randomBytes } from 'node:crypto'
import { SwarmError } from '../errors.ts'
import { Rc4 } from './rc4.ts'

// Message stream encryption ("MSE/PE", no BEP): both sides of the handshake as state machines over bytes.

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

/**
 * Diffie-Hellman with 160-bit exponents, as the protocol specifies. Uses bigints because `node:crypto` tests the prime
 * every time it is given one (measured: 8 ms and more per handshake against 0.5).
 */
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
  readonly encrypt: Rc4 | undefined
  readonly decrypt: Rc4 | undefined
  /** Decrypted bytes of the stream that arrived with the handshake. */
  readonly rest: Uint8Array
}

type Step = { readonly write?: Uint8Array; readonly done?: MseResult }

const violation = (message: string): SwarmError =>
  new SwarmError('E_PROTOCOL', 'encryption', `encryption handshake: ${message}`)

/** Answers an encryption handshake: selects plaintext if it is offered, else RC4. */
export class MseResponder {
  readonly #infohashByKey: (key: string) => Uint8Array | undefined
  #held: Buffer = Buffer.alloc(0)
  #secret: Buffer | undefined
  #decrypt: Rc4 | undefined
  #encrypt: Rc4 | undefined
  #provide = 0
  #stage: 'key' | 'sync' | 'offer' | 'initial' = 'key'
  #padBytes = 0

  /** `infohashByKey`: gives the torrent's 20-byte infohash for its {@link mseKeyOf}. */
  constructor(infohashByKey: (key: string) => Uint8Array | undefined) {
    this.#infohashByKey = infohashByKey
  }

  /** @throws SwarmError `E_PROTOCOL`. Buffers about 1.2 KB at most. */
  push(bytes: Uint8Array): Step {
    const fresh =
      this.#decrypt === undefined ? Buffer.from(bytes) : Buffer.from(this.#decrypt.apply(Buffer.from(bytes)))
    this.#held = Buffer.concat([this.#held, fresh])
    const write = this.#key()
    return this.#initial(write) ?? (write === undefined ? {} : { write })
  }

  /** Our key, in answer to the peer's. */
  #key(): Buffer | undefined {
    if (this.#stage !== 'key' || this.#held.length < KEY_BYTES) return undefined
    const exchange = new KeyExchange()
    this.#secret = exchange.secret(this.#held.subarray(0, KEY_BYTES))
    this.#held = this.#held.subarray(KEY_BYTES)
    this.#stage = 'sync'
    return Buffer.concat([exchange.publicKey(), randomBytes(Math.floor(Math.random() * 64))])
  }

  /** The end of the handshake; undefined while more has to come. */
  #initial(write: Buffer | undefined): Step | undefined {
    if (this.#stage === 'key') return undefined
    if (this.#stage === 'sync' && !this.#sync()) return undefined
    if (this.#stage === 'offer' && !this.#offer()) return undefined
    const head = 14 + this.#padBytes + 2
    if (this.#held.length < head) return undefined
    const initialBytes = this.#held.readUInt16BE(head - 2)
    if (initialBytes > 1024) throw violation('too much initial payload')
    if (this.#held.length < head + initialBytes) return undefined
    return this.#finish(write, head, initialBytes)
  }

  #offer(): boolean {
    if (this.#held.length < 14) return false
    if (this.#held.readUInt32BE(0) !== 0 || this.#held.readUInt32BE(4) !== 0)
      throw violation('wrong verification constant')
    this.#provide = this.#held.readUInt32BE(8)
    this.#padBytes = this.#held.readUInt16BE(12)
    if (this.#padBytes > PAD_BYTES) throw violation('too much padding')
    this.#stage = 'initial'
    return true
  }

  #sync(): boolean {
    const mark = sha1('req1', this.#secret!)
    const at = this.#held.indexOf(mark)
    if (at < 0 || this.#held.length < at + 40) {
      if (this.#held.length > PAD_BYTES + 40) throw violation('no synchronisation mark')
      return false
    }
    const key = xor(this.#held.subarray(at + 20, at + 40), sha1('req3', this.#secret!)).toString('latin1')
    const infohash = this.#infohashByKey(key)
    if (infohash === undefined) throw violation('a torrent that is not here')
    this.#decrypt = new Rc4(sha1('keyA', this.#secret!, infohash))
    this.#encrypt = new Rc4(sha1('keyB', this.#secret!, infohash))
    this.#held = Buffer.from(this.#decrypt.apply(Buffer.from(this.#held.subarray(at + 40))))
    this.#stage = 'offer'
    return true
  }

  #finish(write: Buffer | undefined, head: number, initialBytes: number): Step {
    const select = (this.#provide & PLAIN) !== 0 ? PLAIN : (this.#provide & RC4) !== 0 ? RC4 : 0
    if (select === 0) throw violation('no known method offered')
    const answer = Buffer.alloc(14)
    answer.writeUInt32BE(select, 8)
    this.#encrypt!.apply(answer)
    const initial = this.#held.subarray(head, head + initialBytes)
    const after = this.#held.subarray(head + initialBytes)
    // Bytes after the initial payload would use the selected method, which the peer cannot know before our answer, so
    // in practice there are none.
    if (select === PLAIN && after.length > 0) throw violation('data before the method was selected')
    const out = write === undefined ? answer : Buffer.concat([write, answer])
    const plain = select === PLAIN
    return {
      write: out,
      done: {
        encrypt: plain ? undefined : this.#encrypt,
        decrypt: plain ? undefined : this.#decrypt,
        rest: Buffer.concat([initial, after])
      }
    }
  }
}

/** Opens an encryption handshake to a peer that refuses plain connections; offers both methods. */
export class MseInitiator {
  readonly #infohash: Uint8Array
  readonly #exchange = new KeyExchange()
  #held: Buffer = Buffer.alloc(0)
  #decrypt: Rc4 | undefined
  #encrypt: Rc4 | undefined
  #mark: Buffer | undefined
  #synced = false
  /** Decrypted bytes from the verification constant on, as far as `#held` reaches. */
  #clear: Buffer = Buffer.alloc(0)

  constructor(infohash: Uint8Array) {
    this.#infohash = infohash
  }

  /** The first bytes to send. */
  start(): Uint8Array {
    return Buffer.concat([this.#exchange.publicKey(), randomBytes(Math.floor(Math.random() * 64))])
  }

  /** `write` in the first answer, `done` in a later one. @throws SwarmError `E_PROTOCOL`. */
  push(bytes: Uint8Array): Step {
    this.#held = Buffer.concat([this.#held, bytes])
    let write: Buffer | undefined
    if (this.#mark === undefined) {
      if (this.#held.length < KEY_BYTES) return {}
      const secret = this.#exchange.secret(this.#held.subarray(0, KEY_BYTES))
      this.#held = this.#held.subarray(KEY_BYTES)
      this.#encrypt = new Rc4(sha1('keyA', secret, this.#infohash))
      const offer = Buffer.alloc(16)
      offer.writeUInt32BE(PLAIN | RC4, 8)
      write = Buffer.concat([
        sha1('req1', secret),
        xor(sha1('req2', this.#infohash), sha1('req3', secret)),
        this.#encrypt.apply(offer)
      ])
      this.#decrypt = new Rc4(sha1('keyB', secret, this.#infohash))
      // The encrypted verification constant is the first 8 bytes of their key stream.
      this.#mark = Buffer.from(this.#decrypt.apply(Buffer.alloc(8)))
    }
    const done = this.#answer()
    return { ...(write === undefined ? {} : { write }), ...(done === undefined ? {} : { done }) }
  }

  /** The bytes after the verification constant, once they are complete: method, padding, then the stream. */
  #answer(): MseResult | undefined {
    if (!this.#synced) {
      const at = this.#held.indexOf(this.#mark!)
      if (at < 0) {
        if (this.#held.length > PAD_BYTES + 8) throw violation('no verification constant')
        return undefined
      }
      this.#synced = true
      this.#held = this.#held.subarray(at + 8)
    }
    const fresh = this.#held.subarray(this.#clear.length)
    this.#clear = Buffer.concat([this.#clear, this.#decrypt!.apply(Buffer.from(fresh))])
    if (this.#clear.length < 6) return undefined
    const select = this.#clear.readUInt32BE(0)
    const padBytes = this.#clear.readUInt16BE(4)
    if (select !== PLAIN && select !== RC4) throw violation('an unknown method was selected')
    if (padBytes > PAD_BYTES) throw violation('too much padding')
    if (this.#clear.length < 6 + padBytes) return undefined
    if (select === PLAIN) return { encrypt: undefined, decrypt: undefined, rest: this.#held.subarray(6 + padBytes) }
    return { encrypt: this.#encrypt, decrypt: this.#decrypt, rest: this.#clear.subarray(6 + padBytes) }
  }
}
