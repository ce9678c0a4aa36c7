import { BLOCK_BYTES, equalBytes, HASH_BYTES, leafLayer, TorrentLayout, toHex } from '@svc/metainfo'
import { VirtualClock } from '@svc/testkit/virtual-clock'
import { Downloader, type DownloaderEvents } from '../../src/download/downloader.ts'
import { PiecePicker } from '../../src/download/picker.ts'
import { PieceHashes } from '../../src/download/piece-hashes.ts'
import type { Verifier } from '../../src/download/verifier.ts'
import type { EventOf } from '../../src/events.ts'
import { BlockReceiver } from '../../src/peer/block-receiver.ts'
import { type PendingRequest, pendingRequest } from '../../src/peer/requests.ts'
import { SlotPool } from '../../src/piece/slot-pool.ts'
import { seeded } from '../seeded.ts'
import type { Fixture } from '../torrent-fixture.ts'

/** The outcome of a schedule. Peers have names; those of honest ones begin with `honest`. */
export interface Outcome {
  /** Peers whose wrong blocks were in a complete piece. */
  readonly culprits: ReadonlySet<string>
  readonly banned: ReadonlySet<string>
  readonly bytes: Uint8Array
}

/** A peer with its connection; a new one after it left. */
interface Source {
  readonly name: string
  /** Which part of its blocks is wrong, from which block on. */
  readonly lies: number
  readonly honestFor: number
  id: number
  given: number
  receiver: BlockReceiver
  readonly queue: PendingRequest[]
  /** What is left of the answer that is arriving. */
  answer: Uint8Array | undefined
}

/**
 * Fetches one file from honest and lying peers. The seed decides which peers are asked, in what fragments answers arrive,
 * which peers reject, choke, leave and come back, and whether any has the hashes of a wrong piece. Then the honest ones go on
 * until the file is complete.
 */
export async function runSchedule(fixture: Fixture, verifier: Verifier, seed: number): Promise<Outcome> {
  const schedule = new Schedule(fixture, verifier, seed)
  const steps = 100 + Math.floor(schedule.random() * 400)
  for (let step = 0; step < steps; step += 1) await schedule.step()
  for (let round = 0; !schedule.complete; round += 1) {
    if (round > 2_000) throw new Error(`schedule ${seed} never completes`)
    await schedule.settle()
    await schedule.clock.advance(1_000)
  }
  await schedule.close()
  return schedule
}

class Schedule implements Outcome {
  readonly culprits = new Set<string>()
  readonly banned = new Set<string>()
  readonly clock = new VirtualClock()
  readonly random: () => number
  readonly bytes: Uint8Array
  readonly #right: Uint8Array
  readonly #leaves: Uint8Array
  readonly #blocksOfPiece: number
  readonly #layout: TorrentLayout
  readonly #picker: PiecePicker
  readonly #downloader: Downloader
  readonly #sources: Source[] = []
  /** By the ids that they ever had. */
  readonly #names = new Map<number, string>()
  readonly #verified = new Set<number>()
  #wrong: EventOf<'piece-wrong'>[] = []
  #nextId = 0
  /** Pieces that are being verified, and the callers that wait until none is. */
  #verifying = 0
  #verifiedAll: () => void = () => undefined
  /** The probability that a peer has the hashes of a wrong piece. */
  readonly #proofs: number

  constructor(fixture: Fixture, verifier: Verifier, seed: number) {
    this.random = seeded(seed)
    this.#layout = new TorrentLayout(fixture.info)
    const file = this.#layout.files[0]!
    this.#right = fixture.files.get(fixture.info.files[0]!.path)!
    this.#leaves = leafLayer(this.#right)
    this.#blocksOfPiece = this.#layout.pieceLengthBytes / BLOCK_BYTES
    this.bytes = new Uint8Array(this.#right.length)
    const hashes = new PieceHashes(this.#layout)
    const root = toHex(file.piecesRoot!)
    hashes.set(root, fixture.layers.get(root)!)
    const picker = new PiecePicker(this.#layout.pieceCount, this.random)
    this.#picker = picker
    for (let piece = 0; piece < this.#layout.pieceCount; piece += 1) picker.reopen(piece)
    picker.addSeed(1, false)
    this.#proofs = [0, 0.5, 1][Math.floor(this.random() * 3)]!
    const writer = {
      fd: undefined,
      write: async (at: number, bytes: Uint8Array) => this.bytes.set(bytes, at),
      markWritten: () => undefined
    }
    this.#downloader = new Downloader({
      env: { clock: this.clock, pool: new SlotPool(1 << 24), verifier },
      layout: this.#layout,
      picker,
      hashes,
      progress: { writer: async () => writer as never },
      emit: (event) => this.#take(event)
    })
    for (let n = 0; n < 2; n += 1) this.#join(`honest-${n}`, 0)
    const liars = 1 + Math.floor(this.random() * 3)
    for (let n = 0; n < liars; n += 1) this.#join(`liar-${n}`, 0.1 + this.random() * 0.9)
  }

  get complete(): boolean {
    return this.#verified.size === this.#layout.pieceCount
  }

  #join(name: string, lies: number): void {
    const honestFor = Math.floor(this.random() * 12)
    const source = { name, lies, honestFor, given: 0, queue: [], answer: undefined }
    this.#sources.push({ ...source, ...this.#connection(name) })
  }

  #connection(name: string): { readonly id: number; readonly receiver: BlockReceiver } {
    this.#nextId += 1
    this.#names.set(this.#nextId, name)
    return { id: this.#nextId, receiver: new BlockReceiver(this.#nextId) }
  }

  #take(event: EventOf<DownloaderEvents>): void {
    if (event.kind === 'failed') throw event.error
    if (event.kind === 'piece-verified' || event.kind === 'piece-wrong') {
      this.#verifying -= 1
      if (this.#verifying === 0) this.#verifiedAll()
    }
    if (event.kind === 'piece-verified') this.#verified.add(event.piece)
    if (event.kind === 'bad-data') this.#ban(this.#names.get(event.sender)!)
    if (event.kind !== 'piece-wrong') return
    this.#wrong.push(event)
    const { buffer, leaves } = event
    for (let block = 0; block < buffer.blockCount; block += 1) {
      const at = block * HASH_BYTES
      if (!equalBytes(leaves.subarray(at, at + HASH_BYTES), this.#proven(buffer.piece).subarray(at, at + HASH_BYTES)))
        this.culprits.add(this.#names.get(buffer.senderOf(block))!)
    }
  }

  #proven(piece: number): Uint8Array {
    const from = piece * this.#blocksOfPiece * HASH_BYTES
    return this.#leaves.subarray(from, from + this.#blocksOfPiece * HASH_BYTES)
  }

  #ban(name: string): void {
    this.banned.add(name)
    const at = this.#sources.findIndex((source) => source.name === name)
    if (at >= 0) this.#leave(this.#sources.splice(at, 1)[0]!)
  }

  #leave(source: Source): void {
    source.receiver.abandon()
    source.answer = undefined
    for (const request of source.queue.splice(0)) this.#release(source, request)
    this.#downloader.share(source.id)
  }

  async step(): Promise<void> {
    const source = this.#sources[Math.floor(this.random() * this.#sources.length)]!
    const chance = this.random()
    if (chance < 0.35) this.#ask(source, 1 + Math.floor(this.random() * 4))
    else if (chance < 0.85) this.#give(source, 1 + Math.floor(this.random() * 3 * BLOCK_BYTES))
    else if (chance < 0.9) this.#reject(source)
    else if (chance < 0.93) this.#downloader.share(source.id)
    else if (chance < 0.95) {
      this.#leave(source)
      Object.assign(source, this.#connection(source.name))
    } else if (chance < 0.97) this.#judge()
    else await new Promise((resolve) => setImmediate(resolve))
    this.#check()
  }

  /** Ends what was begun: all peers answer their requests, and the honest ones take what is left. */
  async settle(): Promise<void> {
    this.#judge()
    // as the engine's clock does
    for (const id of this.#downloader.overdue(this.clock.monotonic())) this.#downloader.share(id)
    for (const source of [...this.#sources]) {
      if (source.lies === 0) for (let n = 0; n < 4; n += 1) this.#ask(source, 4)
      while (source.queue.length > 0) this.#give(source, Number.POSITIVE_INFINITY)
    }
    if (this.#verifying > 0)
      await new Promise<void>((resolve) => {
        this.#verifiedAll = resolve
      })
    this.#check()
  }

  /** A piece with requests cannot be started again. */
  #check(): void {
    for (const { buffer } of this.#sources.flatMap(({ queue }) => queue)) {
      if (buffer.sealed) continue
      if (this.#picker.isOpen(buffer.piece)) throw new Error(`piece ${buffer.piece} is begun and may be begun again`)
    }
  }

  #ask(source: Source, maxBlocks: number): void {
    const order = this.#downloader.take({ id: source.id, bits: undefined }, maxBlocks)
    if (order === undefined) return
    source.queue.push(pendingRequest(order, 0))
  }

  /** The next bytes of the answer to the peer's first request. */
  #give(source: Source, bytes: number): void {
    const request = source.queue[0]
    if (request === undefined) return
    if (source.answer === undefined) {
      source.answer = this.#answerOf(source, request)
      source.receiver.start(request)
    }
    source.receiver.data(source.answer.subarray(0, bytes))
    source.answer = source.answer.subarray(Math.min(bytes, source.answer.length))
    if (source.answer.length > 0) return
    source.answer = undefined
    source.queue.shift()
    source.receiver.end()
    const { sealed } = request.buffer
    this.#downloader.arrived(request.buffer, request.run, source.id, this.clock.monotonic())
    if (!sealed && request.buffer.sealed) this.#verifying += 1
  }

  #answerOf(source: Source, { piece, begin, length }: PendingRequest): Uint8Array {
    const from = piece * this.#layout.pieceLengthBytes + begin
    const bytes = this.#right.slice(from, from + length)
    for (let at = 0; at < length; at += BLOCK_BYTES) {
      source.given += 1
      if (source.given > source.honestFor && this.random() < source.lies) bytes[at]! ^= 1
    }
    return bytes
  }

  #reject(source: Source): void {
    if (source.queue.length < 2) return
    for (const request of source.queue.splice(1, 1)) this.#release(source, request)
  }

  #release(source: Source, { buffer, run }: PendingRequest): void {
    const { sealed } = buffer
    this.#downloader.release(buffer, run, source.id)
    if (!sealed && buffer.sealed) this.#verifying += 1
  }

  #judge(): void {
    for (const { buffer, leaves } of this.#wrong.splice(0))
      this.#downloader.judge(
        buffer,
        leaves,
        buffer.senders().size > 1 && this.random() < this.#proofs ? this.#proven(buffer.piece) : undefined
      )
  }

  close(): Promise<void> {
    return this.#downloader.close()
  }
}
