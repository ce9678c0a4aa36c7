import { growthOf, type Series } from '../harness/plot.ts'
import { formatMib, formatSeconds, formatSize } from '../harness/report.ts'
import type { Bench, Line, Row } from '../harness/row.ts'
import { Peer } from '../swarm/peer-process.ts'
import { makeTorrents } from '../swarm/swarm-data.ts'

const MIB = 1 << 20
const PIECE_BYTES = MIB
/** Exponent allowed. The total size is constant, so only the overhead per peer and torrent grows. */
const MAX_GROWTH = 1.15

interface Fill {
  readonly seconds: number
  readonly cpuSeconds: number
  readonly rssBytes: number
}

/** Times a leech that downloads all torrents from `peers` complete seeds. */
async function fill({ scratch }: Bench, folder: string, torrents: readonly string[], peers: number): Promise<Fill> {
  const seeds: Peer[] = []
  for (let at = 0; at < peers; at++) {
    const seed = await Peer.start('us')
    for (const [id, torrent] of torrents.entries())
      seed.send({ cmd: 'add', id: `s${id}`, torrent, save: folder, seed: true })
    for (const _ of torrents) await seed.wait('added')
    seeds.push(seed)
  }
  const leech = await Peer.start('us')
  const save = await scratch.folder()
  const addresses = seeds.map(({ port }) => ['127.0.0.1', port])
  const before = await leech.usage()
  const begun = performance.now()
  for (const [id, torrent] of torrents.entries())
    leech.send({ cmd: 'add', id: `l${id}`, torrent, save, peers: addresses })
  for (const _ of torrents) await leech.wait('finished')
  const seconds = (performance.now() - begun) / 1000
  const after = await leech.usage()
  await Promise.all([leech, ...seeds].map((peer) => peer.stop()))
  await scratch.drop(save)
  return { seconds, cpuSeconds: after.cpuSeconds - before.cpuSeconds, rssBytes: after.maxRssBytes }
}

/** Download cost of a constant total size, by number of peers and by number of torrents. */
export const growthSwarmRow: Row = {
  name: 'growth-swarm',
  summary: 'a fill of the same bytes from 1 to 64 peers, and as 1 to 1,000 torrents; plots',
  async run(bench) {
    const { scratch, profile, plot, say } = bench
    const totalBytes = profile.seedBytes / 4
    const lines: Line[] = []
    for (const [unit, counts] of [
      ['peers', profile.growthPeers],
      ['torrents', profile.growthTorrents]
    ] as const) {
      const time: [number, number][] = []
      const cpu: [number, number][] = []
      const memory: [number, number][] = []
      for (const count of counts) {
        const torrents = unit === 'torrents' ? count : 1
        const folder = await scratch.folder()
        const made = await makeTorrents(folder, torrents, Math.floor(totalBytes / torrents), PIECE_BYTES)
        const done = await fill(bench, folder, made.torrents, unit === 'peers' ? count : 1)
        say(`${count} ${unit}: ${formatSeconds(done.seconds)}`)
        time.push([count, done.seconds])
        cpu.push([count, done.cpuSeconds])
        memory.push([count, done.rssBytes / MIB])
        await scratch.drop(folder)
      }
      const curves: Series[] = [
        { name: 'time', points: time },
        { name: 'CPU of who fetches', points: cpu }
      ]
      plot(`swarm-${unit}`, {
        title: `A fill of ${formatSize(totalBytes)} against its ${unit}`,
        x: unit,
        y: 'seconds',
        series: curves
      })
      const rss: Series = { name: 'RSS of who fetches', points: memory }
      plot(`swarm-${unit}-memory`, {
        title: `Memory of a fill against its ${unit}`,
        x: unit,
        y: 'MiB',
        series: [rss]
      })
      for (const curve of [...curves, rss]) {
        const format = (value: number): string => (curve === rss ? formatMib(value * MIB) : formatSeconds(value))
        const growth = growthOf(curve)
        lines.push({
          what: `a fill against its ${unit}, ${curve.name}, ${counts.at(-1)} ${unit}`,
          ours: format(curve.points.at(-1)![1]),
          peer: '',
          target: 'linear at most',
          met: growth <= MAX_GROWTH,
          note: `one: ${format(curve.points[0]![1])}; power ${growth.toFixed(2)} in the last step`
        })
      }
    }
    return lines
  }
}
