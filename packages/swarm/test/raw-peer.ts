import { randomBytes } from 'node:crypto'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { leafLayer, leavesForRequest, PieceTree, toHex, truncateInfohash } from '@svc/metainfo'
import { WireDecoder, type WireSink } from '../src/wire/decoder.ts'
import { formatHandshake, HANDSHAKE_BYTES, tryParseHandshake } from '../src/wire/handshake.ts'
import {
  formatBlockRef,
  formatHashes,
  formatHashRange,
  formatPieceHeader,
  formatSimple,
  type HashRange,
  MESSAGE,
  parseHashRange
} from '../src/wire/messages.ts'
import type { Fixture } from './torrent-fixture.ts'

/** Answered with a reject, after all that was sent before it. */
export const MARK = formatHashRange(MESSAGE.hashRequest, {
  root: new Uint8Array(32),
  baseLayer: 0,
  index: 0,
  length: 2,
  proofLayers: 0
})

/** How a scripted peer answers requests; honestly by default. */
export interface Script {
  /** The bytes of a block, or undefined: no answer. May write to the peer itself. */
  readonly block?: (
    honest: Uint8Array,
    block: { piece: number; begin: number; length: number },
    peer: RawPeer
  ) => Uint8Array | undefined
  /** Hashes, or undefined: reject; `null`: no answer. */
  readonly hashes?: (honest: Uint8Array | undefined, range: HashRange, peer: RawPeer) => Uint8Array | undefined | null
  /** After the handshake, instead of have-all and unchoke. */
  readonly greet?: (peer: RawPeer) => void
}

/** A peer of the test's own, on a raw socket: as honest as its script. */
export class RawPeer implements WireSink {
  readonly socket: Socket
  readonly #fixture: Fixture
  readonly #script: Script
  readonly #decoder = new WireDecoder(this)
  #held = Buffer.alloc(0)
  #shaken = false
  #block: { piece: number; begin: number; parts: Uint8Array[] } | undefined
  readonly received: { id: number; body: Uint8Array }[] = []
  readonly blocks: { piece: number; begin: number; bytes: Uint8Array }[] = []
  readonly closed: Promise<void>
  #wake: () => void = () => undefined

  constructor(socket: Socket, fixture: Fixture, script: Script, dialled: boolean) {
    this.socket = socket
    this.#fixture = fixture
    this.#script = script
    socket.on('error', () => undefined)
    this.closed = new Promise((resolve) =>
      socket.once('close', () => {
        this.#wake()
        resolve()
      })
    )
    socket.on('data', (bytes) => this.#data(bytes))
    if (dialled) this.#shake()
  }

  #shake(): void {
    this.socket.write(
      formatHandshake({
        infohash: truncateInfohash(this.#fixture.info.infohash),
        peerId: randomBytes(20),
        extended: true,
        fast: true
      })
    )
  }

  #data(bytes: Uint8Array): void {
    if (this.#shaken) return this.#decoder.push(bytes)
    this.#held = Buffer.concat([this.#held, bytes])
    if (this.#held.length < HANDSHAKE_BYTES) return
    if (tryParseHandshake(this.#held.subarray(0, HANDSHAKE_BYTES)) === undefined)
      throw new Error('the engine sent no handshake')
    this.#shaken = true
    if (this.#held.length >= 0 && !this.socket.destroyed) this.#greet()
    if (this.#held.length > HANDSHAKE_BYTES) this.#decoder.push(this.#held.subarray(HANDSHAKE_BYTES))
  }

  /** Sent by the listener side before the greeting. */
  shakeBack(): void {
    this.#shake()
  }

  #greet(): void {
    if (this.#script.greet !== undefined) return this.#script.greet(this)
    this.send(formatSimple(MESSAGE.haveAll))
    this.send(formatSimple(MESSAGE.unchoke))
  }

  send(bytes: Uint8Array): void {
    if (!this.socket.destroyed) this.socket.write(bytes)
  }

  /** Waits for a message with this id that was not waited for before. */
  async next(id: number): Promise<Uint8Array> {
    for (;;) {
      const at = this.received.findIndex((message) => message.id === id)
      if (at >= 0) return this.received.splice(at, 1)[0]!.body
      if (this.socket.destroyed) throw new Error(`closed before message ${id}`)
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }

  async nextBlock(): Promise<{ piece: number; begin: number; bytes: Uint8Array }> {
    while (this.blocks.length === 0) {
      if (this.socket.destroyed) throw new Error('closed before a block')
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
    return this.blocks.shift()!
  }

  /** The file's bytes of a block, fewer at the end of the file. */
  bytesOf(piece: number, begin: number, length: number): Uint8Array {
    const { info, files } = this.#fixture
    const file = info.files.find(
      (entry) => entry.pieceCount > 0 && entry.firstPiece <= piece && piece < entry.firstPiece + entry.pieceCount
    )!
    const offset = (piece - file.firstPiece) * info.pieceLength + begin
    return files.get(file.path)!.subarray(offset, offset + length)
  }

  honestHashes(range: HashRange): Uint8Array | undefined {
    const { info, files, layers } = this.#fixture
    const file = info.files.find(
      (entry) => entry.piecesRoot !== undefined && Buffer.compare(entry.piecesRoot, range.root) === 0
    )
    if (file === undefined) return undefined
    const shape = { sizeBytes: file.length, pieceLengthBytes: info.pieceLength }
    const window = leavesForRequest(range, shape)
    const leaves =
      window === undefined ? undefined : leafLayer(files.get(file.path)!).subarray(window.start * 32, window.end * 32)
    return new PieceTree(shape, layers.get(toHex(file.piecesRoot!))).answer(range, leaves)
  }

  admits(): boolean {
    return true
  }

  message(id: number, body: Uint8Array): void {
    this.received.push({ id, body: body.slice() })
    if (id === MESSAGE.hashRequest) this.#answerHashes(parseHashRange(body))
    this.#wake()
  }

  requested(piece: number, begin: number, length: number): void {
    this.received.push({
      id: MESSAGE.request,
      body: formatBlockRef(MESSAGE.request, piece, begin, length).slice(5)
    })
    this.#answerBlock({ piece, begin, length })
    this.#wake()
  }

  #answerBlock(block: { piece: number; begin: number; length: number }): void {
    const honest = this.bytesOf(block.piece, block.begin, block.length)
    const bytes = this.#script.block === undefined ? honest : this.#script.block(honest, block, this)
    if (bytes !== undefined) this.sendBlock(block.piece, block.begin, bytes)
  }

  sendBlock(piece: number, begin: number, bytes: Uint8Array): void {
    this.send(Buffer.concat([formatPieceHeader(piece, begin, bytes.length), bytes]))
  }

  #answerHashes(range: HashRange): void {
    const honest = this.honestHashes(range)
    const hashes = this.#script.hashes === undefined ? honest : this.#script.hashes(honest, range, this)
    if (hashes === null) return
    this.send(hashes === undefined ? formatHashRange(MESSAGE.hashReject, range) : formatHashes(range, hashes))
  }

  blockStart(piece: number, begin: number): void {
    this.#block = { piece, begin, parts: [] }
  }

  blockData(fragment: Uint8Array): void {
    this.#block!.parts.push(fragment.slice())
  }

  blockEnd(): void {
    this.blocks.push({ piece: this.#block!.piece, begin: this.#block!.begin, bytes: Buffer.concat(this.#block!.parts) })
    this.#wake()
  }
}

export interface RawListener {
  /** `host:port` */
  readonly address: string
  /** The peers that connected, in order. */
  readonly peers: RawPeer[]
  close(): Promise<void>
}

/** A scripted peer that waits to be dialled. */
export async function listenRaw(fixture: Fixture, script: Script = {}): Promise<RawListener> {
  const peers: RawPeer[] = []
  const server: Server = createServer((socket) => {
    const peer = new RawPeer(socket, fixture, script, false)
    peer.shakeBack()
    peers.push(peer)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    peers,
    close: () => {
      for (const peer of peers) peer.socket.destroy()
      return new Promise((resolve) => server.close(() => resolve()))
    }
  }
}

/** A scripted peer that dials an engine. */
export async function dialRaw(port: number, fixture: Fixture, script: Script = {}): Promise<RawPeer> {
  const socket = connect(port, '127.0.0.1')
  await new Promise<void>((resolve, reject) => {
    socket.once('connect', resolve)
    socket.once('error', reject)
  })
  return new RawPeer(socket, fixture, script, true)
}
