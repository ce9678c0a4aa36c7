import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { parseTorrent, toHex } from '@svc/metainfo'
import { interleave, median } from '../harness/measure.ts'
import { writeGguf } from '../harness/model-files.ts'
import { formatSize } from '../harness/report.ts'
import type { Line, Row } from '../harness/row.ts'
import { Peer } from '../swarm/peer-process.ts'

const PIECE_BYTES = 4 << 20
const BLOCK_BYTES = 16_384
const DISCARD = new URL('../swarm/discard-process.ts', import.meta.url).pathname
/** Target by number of connections, relative to libtorrent's speed. */
const TARGETS = [
  [1, 1],
  [4, 1.15],
  [16, 1.3]
] as const

/** `blocks`: what answers requests and does nothing else (`bench/bounds`). */
type Kind = 'lt' | 'us' | 'blocks'

interface Seeding {
  readonly bytesPerSecond: number
  readonly cpuPerGigabyte: number
}

export const seedRow: Row = {
  name: 'seed',
  summary: 'the engine seeding into 1, 4 and 16 connections that throw everything away, against libtorrent',
  async run({ scratch, profile, say }) {
    const { seedBytes, runs } = profile
    const folder = await scratch.folder()
    mkdirSync(join(folder, 'data'))
    writeGguf(join(folder, 'data'), 'model.bin', seedBytes)
    writeFileSync(join(folder, 'data', 'small.txt'), 'small')
    const torrent = join(folder, 'data.torrent')
    const maker = await Peer.start('lt')
    maker.send({ cmd: 'make', path: join(folder, 'data'), piece: PIECE_BYTES, out: torrent })
    await maker.wait('made')
    await maker.stop()
    if (!existsSync(torrent)) throw new Error('no torrent was made')
    const infohash = toHex(parseTorrent(readFileSync(torrent)).info.infohash)

    const measure = async (kind: Kind, connections: number): Promise<Seeding> => {
      const seed = await Peer.start(kind)
      seed.send({ cmd: 'add', id: 's', torrent, save: folder, seed: true, check: true })
      await seed.wait(kind === 'lt' ? 'checked' : 'added')
      const blocks = Math.floor(seedBytes / PIECE_BYTES) * (PIECE_BYTES / BLOCK_BYTES)
      const discard = async (blocks: number): Promise<number> => {
        const job = { port: seed.port, infohash, pieceBytes: PIECE_BYTES, connections, blocks }
        const args = [...process.execArgv, DISCARD, JSON.stringify(job)]
        return Number((await promisify(execFile)(process.execPath, args)).stdout)
      }
      // a seed runs for days: neither the first second of libtorrent, in which it sends little ahead, nor what Node compiles at first.
      await discard(blocks)
      const before = await seed.usage()
      const seconds = await discard(blocks)
      const after = await seed.usage()
      await seed.stop()
      const bytes = Math.floor(blocks / connections) * connections * BLOCK_BYTES
      return {
        bytesPerSecond: bytes / seconds,
        cpuPerGigabyte: (after.cpuSeconds - before.cpuSeconds) / (bytes / 1e9)
      }
    }

    const lines: Line[] = []
    for (const [connections, target] of TARGETS) {
      const rounds = await interleave<Seeding, Kind>(runs, {
        lt: () => measure('lt', connections),
        us: () => measure('us', connections),
        blocks: () => measure('blocks', connections)
      })
      const of = (kind: Kind, pick: (one: Seeding) => number): number => median(rounds[kind].map(pick))
      const speed = (kind: Kind): number => of(kind, (one) => one.bytesPerSecond)
      const cpu = (kind: Kind): string => of(kind, (one) => one.cpuPerGigabyte).toFixed(2)
      const ratio = speed('us') / speed('lt')
      say(`${connections} connections: ${ratio.toFixed(2)}`)
      lines.push({
        what: `${formatSize(seedBytes)} into ${connections} ${connections === 1 ? 'connection' : 'connections'}`,
        ours: `${Math.round(speed('us') / 1e6)} MB/s`,
        peer: `libtorrent ${Math.round(speed('lt') / 1e6)} MB/s`,
        ratio,
        target: `≥ ${target}`,
        met: ratio >= target,
        note: `CPU s/GB ${cpu('us')} against ${cpu('lt')}; bound ${(speed('blocks') / speed('lt')).toFixed(2)} with ${cpu('blocks')}`
      })
    }
    return lines
  }
}
