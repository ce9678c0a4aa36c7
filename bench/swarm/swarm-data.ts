import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { writeGguf } from '../harness/model-files.ts'
import { Peer } from './peer-process.ts'

/** Files and their v2 torrents, as libtorrent makes them. */
export interface SwarmData {
  /** What a seed saves to. */
  readonly folder: string
  readonly torrents: readonly string[]
}

/** `count` torrents of one file of `sizeBytes` each, and of a small one. */
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
    // libtorrent takes a folder with one file for that file
    writeFileSync(join(data, 'small.txt'), `small ${at}`)
    const out = join(folder, `data-${at}.torrent`)
    maker.send({ cmd: 'make', path: data, piece: pieceBytes, out })
    await maker.wait('made')
    torrents.push(out)
  }
  await maker.stop()
  return { folder, torrents }
}
