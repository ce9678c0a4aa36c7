import { randomInt } from 'node:crypto'
import type { Clock } from '@svc/internal-clock'
import { type ArtifactState, type CopyAnswer, type CopyWitness, isEvictable } from '@svc/library/parts'
import type { ArtifactTorrent, Manifest } from '@svc/manifest'
import type { PieceLayers } from '@svc/metainfo'
import type { Sha256Digest } from '@svc/ref'
import type { FileWriter, Swarm, SwarmTorrent, TorrentStorage } from '@svc/swarm'
import type { ArtifactSwarm } from './artifact-swarm.ts'
import type { ArtifactTorrents } from './artifact-torrents.ts'
import type { Fetches } from './fetches.ts'
import type { ArtifactSeeding } from './seeding.ts'

/** A magnet may name a hundred. Peers are asked one at a time, so that no other can answer for one. */
const MAX_ASKED = 4
const CONNECT_MS = 5_000
const TIMEOUT_MS = 20_000
/** Pieces to ask for, at unpredictable places. */
const PIECES = 2

export interface PeerCopiesDeps {
  readonly engine: Pick<Swarm, 'add'>
  readonly clock: Clock
  readonly torrents: Pick<ArtifactTorrents, 'of' | 'layersOf'>
  readonly swarm: Pick<ArtifactSwarm, 'joined' | 'leave'>
  readonly fetches: Pick<Fetches, 'turns'>
  readonly seeding: Pick<ArtifactSeeding, 'join'>
}

/**
 * Whether the peers that an import named still have its weights: they say that they have everything, and give two
 * pieces, since the claim alone costs nothing. Peers that a tracker or the DHT names may be gone tomorrow: they are not
 * asked.
 */
export class PeerCopies implements CopyWitness {
  readonly #deps: PeerCopiesDeps

  constructor(deps: PeerCopiesDeps) {
    this.#deps = deps
  }

  async ask(manifest: Manifest, state: ArtifactState, signal: AbortSignal): Promise<readonly CopyAnswer[]> {
    const { torrents } = this.#deps
    const { manifestDigest } = state
    const peers = state.hints.peers.slice(0, MAX_ASKED)
    const torrent = peers.length === 0 ? undefined : await torrents.of(manifestDigest)
    if (torrent === undefined) return []
    const weights = new Set(manifest.files.filter(isEvictable).map(({ digest }) => digest))
    const answers: CopyAnswer[] = []
    try {
      const layers = await torrents.layersOf(torrent, state, signal)
      await this.#aside(manifestDigest, signal, async () => {
        for (const where of peers) {
          const answer = await this.#ask(where, torrent, { layers, strangers: state.hints.others }, weights, signal)
          answers.push({ kind: 'peer', where, ...answer })
          if (answer.is === 'there') break
        }
      })
    } catch (error) {
      signal.throwIfAborted()
      const why = (error as Error).message
      for (const where of peers.slice(answers.length)) answers.push({ kind: 'peer', where, is: 'silent', why })
    }
    return answers
  }

  /** Runs `work` while the artifact takes no part in its swarm: the engine can join one only once, and would find itself there. */
  #aside<T>(manifestDigest: Sha256Digest, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    const { fetches, swarm, seeding } = this.#deps
    return fetches.turns.run(manifestDigest, signal, async () => {
      const isSeed = swarm.joined.get(manifestDigest)?.seeding === true
      await swarm.leave(manifestDigest)
      try {
        return await work()
      } finally {
        if (isSeed) await seeding.join(manifestDigest)
      }
    })
  }

  /** Peers learn only that these pieces are wanted. */
  async #ask(
    where: string,
    torrent: ArtifactTorrent,
    {
      layers: pieceLayers,
      strangers = []
    }: { readonly layers: PieceLayers; readonly strangers?: readonly string[] | undefined },
    weights: ReadonlySet<Sha256Digest>,
    signal: AbortSignal
  ): Promise<Pick<CopyAnswer, 'is' | 'why'>> {
    const { engine, clock } = this.#deps
    const quiet = { dht: false, pex: false, disclose: false, upload: false }
    const handle = engine.add({
      info: torrent,
      pieceLayers,
      storage: new Nowhere(),
      peers: [where],
      strangers,
      ...quiet
    })
    const over = Promise.withResolvers<void>()
    const timers = [
      clock.after(TIMEOUT_MS, over.resolve),
      clock.after(CONNECT_MS, () => handle.peers().length === 0 && over.resolve())
    ]
    signal.addEventListener('abort', () => over.resolve(), { once: true })
    try {
      const pieces = wantPieces(handle, torrent, weights)
      const isProven = (): boolean => pieces.every((piece) => handle.has(piece))
      let hasLied = false
      handle.on('piece', () => isProven() && over.resolve())
      handle.on('warning', ({ lied = false }) => {
        hasLied ||= lied
        if (lied) over.resolve()
      })
      handle.once('failed', () => over.resolve())
      await over.promise
      signal.throwIfAborted()
      const [peer, ...others] = handle.peers()
      if (hasLied) return { is: 'gone', why: 'it sent the wrong bytes' }
      // a peer that dialled us may have sent them instead
      if (peer === undefined || peer.incoming || others.length > 0) return { is: 'silent', why: 'it does not answer' }
      if (!peer.seed) return { is: 'gone', why: 'it does not say that it has everything' }
      return isProven() ? { is: 'there' } : { is: 'silent', why: 'it gives nothing now' }
    } finally {
      for (const timer of timers) timer.cancel()
      await handle.remove()
    }
  }
}

/** Has pieces of the weights fetched first, and nothing of other files. @returns their numbers */
function wantPieces(handle: SwarmTorrent, torrent: ArtifactTorrent, weights: ReadonlySet<Sha256Digest>): number[] {
  const { files, pieceLengthBytes } = handle.layout!
  const all = files.filter(({ index, pieceCount }) => pieceCount > 0 && weights.has(torrent.files[index]!.digest))
  const count = all.reduce((sum, { pieceCount }) => sum + pieceCount, 0)
  const chosen = new Set<number>()
  while (chosen.size < Math.min(PIECES, count)) chosen.add(randomInt(count))
  const pieces: number[] = []
  const ranges: Parameters<SwarmTorrent['hasten']>[0][number][] = []
  let before = 0
  for (const { index, firstPiece, pieceCount, lengthBytes } of all) {
    for (const at of chosen) {
      if (at < before || at >= before + pieceCount) continue
      pieces.push(firstPiece + at - before)
      const start = (at - before) * pieceLengthBytes
      ranges.push({ fileIndex: index, start, end: Math.min(start + pieceLengthBytes, lengthBytes) })
    }
    before += pieceCount
  }
  const wanted = new Set(ranges.map(({ fileIndex }) => fileIndex))
  for (const { index } of files) if (!wanted.has(index)) handle.priority(index, 0)
  handle.hasten(ranges)
  return pieces
}

/** Pieces are verified, and not kept. */
class Nowhere implements TorrentStorage {
  async open(): Promise<void> {}
  async close(): Promise<void> {}
  async state(): ReturnType<TorrentStorage['state']> {
    return { kind: 'partial', ranges: [] }
  }
  async read(): Promise<number> {
    throw new Error('nothing is kept')
  }
  async writer(): Promise<FileWriter> {
    return { fd: undefined, write: async () => undefined, markWritten: () => undefined, unmark: () => undefined }
  }
  async fileComplete(): Promise<'ok'> {
    return 'ok'
  }
}
