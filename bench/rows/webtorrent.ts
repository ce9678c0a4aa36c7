import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { interleave, median } from '../harness/measure.ts'
import { writeGguf } from '../harness/model-files.ts'
import { formatSize } from '../harness/report.ts'
import type { Row } from '../harness/row.ts'
import { Peer } from '../swarm/peer-process.ts'
import { makeTorrents } from '../swarm/swarm-data.ts'

const PIECE_BYTES = 4 << 20

interface Transfer {
  readonly bytesPerSecond: number
  readonly cpuSeconds: number
}

export const webtorrentRow: Row = {
  name: 'webtorrent',
  summary: 'the engine (v2) from one process to another, against webtorrent (v1)',
  async run({ scratch, profile }) {
    const { seedBytes, runs } = profile
    const ours = await scratch.folder()
    const { torrents } = await makeTorrents(ours, 1, seedBytes, PIECE_BYTES)
    const theirs = await scratch.folder()
    mkdirSync(join(theirs, 'data'))
    writeGguf(join(theirs, 'data'), 'model.bin', seedBytes)
    const v1 = join(theirs, 'data.torrent')

    const transfer = async (seed: Peer, leech: Peer, torrent: string, port: number): Promise<Transfer> => {
      const save = await scratch.folder()
      const before = [await seed.usage(), await leech.usage()]
      leech.send({ cmd: 'add', id: 'l', torrent, save, peers: [['127.0.0.1', port]] })
      const { seconds } = await leech.wait('finished')
      const after = [await seed.usage(), await leech.usage()]
      await Promise.all([leech.stop(), seed.stop()])
      await scratch.drop(save)
      const cpu = (all: readonly { cpuSeconds: number }[]): number => all[0]!.cpuSeconds + all[1]!.cpuSeconds
      return {
        bytesPerSecond: seedBytes / (seconds as number),
        cpuSeconds: (cpu(after) - cpu(before)) / (seedBytes / 1e9)
      }
    }
    const rounds = await interleave(runs, {
      us: async () => {
        const seed = await Peer.start('us')
        seed.send({ cmd: 'add', id: 's', torrent: torrents[0], save: ours, seed: true })
        await seed.wait('added')
        return transfer(seed, await Peer.start('us'), torrents[0]!, seed.port)
      },
      wt: async () => {
        const seed = await Peer.start('wt')
        seed.send({ cmd: 'seed', path: join(theirs, 'data', 'model.bin'), torrent: v1 })
        const { port } = await seed.wait('seeding')
        return transfer(seed, await Peer.start('wt'), v1, port as number)
      }
    })
    const of = (who: 'us' | 'wt', pick: (one: Transfer) => number): number => median(rounds[who].map(pick))
    const speed = (who: 'us' | 'wt'): number => of(who, (one) => one.bytesPerSecond)
    const cpu = (who: 'us' | 'wt'): number => of(who, (one) => one.cpuSeconds)
    const ratio = speed('us') / speed('wt')
    return [
      {
        what: `${formatSize(seedBytes)}, seed to leech`,
        ours: `${Math.round(speed('us') / 1e6)} MB/s`,
        peer: `webtorrent ${Math.round(speed('wt') / 1e6)} MB/s`,
        ratio,
        target: '≥ 3.5, ≤ 0.4 of its CPU',
        met: ratio >= 3.5 && cpu('us') <= 0.4 * cpu('wt'),
        note: `CPU s/GB of both sides ${cpu('us').toFixed(2)} against ${cpu('wt').toFixed(2)} (${(cpu('us') / cpu('wt')).toFixed(2)})`
      }
    ]
  }
}
