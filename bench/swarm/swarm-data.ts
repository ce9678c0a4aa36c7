import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { writeGguf } from '../harness/model-files.ts'
import { Peer } from './peer-process.ts'

/** Test files, and v2 torrents of them made by libtorrent. */
export interface SwarmData {
  /** The save path for a seed. */
  readonly folder: string
  readonly torrents: readonly string[]
}

/** Creates `count` torrents, each with one file of `sizeBytes` and a tiny one. */
export async function makeTorrents(
  folder: string,
  count: number,
  sizeBytes: number,
  pieceBytes: number
): Promise<SwarmData> {
  const maker = await Peer.start('lt')
  const torrents: string[] = []
  for (let at = 0; at < count; at++) {
    const data = join(folder, `data-${at}`)
    mkdirSync(data)
    writeGguf(data, 'model.bin', sizeBytes)
    // a second file, because libtorrent makes a single-file torrent of a folder with one
    writeFileSync(join(data, 'small.txt'), `small ${at}`)
    const out = join(folder, `data-${at}.torrent`)
    maker.send({ cmd: 'make', path: data, piece: pieceBytes, out })
    await maker.wait('made')
    torrents.push(out)
  }
  await maker.stop()
  return { folder, torrents }
}
