import { interleave, median } from '../harness/measure.ts'
import { formatSeconds, formatSize } from '../harness/report.ts'
import type { Row } from '../harness/row.ts'
import { Peer } from '../swarm/peer-process.ts'
import { makeTorrents } from '../swarm/swarm-data.ts'

const PIECE_BYTES = 4 << 20
const MAX_MAGNET_SECONDS = 0.06
const MAX_FIRST_SECONDS = 1.5

export const firstRow: Row = {
  name: 'first',
  summary:
    'from a magnet to its hashes and first piece; the first block of a libtorrent peer with its default settings',
  async run({ scratch, profile }) {
    const folder = await scratch.folder()
    const { torrents } = await makeTorrents(folder, 1, profile.seedBytes, PIECE_BYTES)
    const torrent = torrents[0]!
    /** Seconds from adding a seed's address to the first piece or block. */
    const first = async (leech: Peer, more: object): Promise<number> => {
      const seed = await Peer.start('us')
      seed.send({ cmd: 'add', id: 's', torrent, save: folder, seed: true })
      await seed.wait('added')
      const save = await scratch.folder()
      leech.send({ cmd: 'add', id: 'l', torrent, save, peers: [['127.0.0.1', seed.port]], ...more })
      const { seconds } = await leech.wait('first-block')
      await Promise.all([leech.stop(), seed.stop()])
      await scratch.drop(save)
      return seconds as number
    }
    const rounds = await interleave(profile.runs, {
      magnet: async () => first(await Peer.start('us'), { magnet: true }),
      info: async () => first(await Peer.start('us'), {}),
      lt: async () => first(await Peer.start('lt', { defaults: true }), {})
    })
    const [magnet, info, lt] = [median(rounds.magnet), median(rounds.info), median(rounds.lt)]
    return [
      {
        what: `magnet of ${formatSize(profile.seedBytes)} → all hashes`,
        ours: formatSeconds(Math.max(magnet - info, 1e-4)),
        peer: '',
        target: '≤ 60 ms',
        met: magnet - info <= MAX_MAGNET_SECONDS,
        note: `to the first verified piece ${formatSeconds(magnet)}, with the metadata at hand ${formatSeconds(info)}`
      },
      {
        what: 'first block of a default libtorrent peer',
        ours: formatSeconds(lt),
        peer: '',
        target: '< 1.5 s',
        met: lt < MAX_FIRST_SECONDS,
        note: 'with uTP and encryption, as it comes'
      }
    ]
  }
}
