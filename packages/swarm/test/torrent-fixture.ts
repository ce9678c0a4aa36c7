import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { buildInfo, encodeTorrent, leafLayer, pieceLayer, piecesRoot, type TorrentInfo, toHex } from '@svc/metainfo'

/** Reproducible bytes of any length. */
function seededBytes(length: number, seed = 1): Uint8Array {
  const out = new Uint8Array(length)
  let state = (seed * 2_654_435_761) >>> 0 || 1
  const words = new Uint32Array(out.buffer, 0, length >> 2)
  for (let at = 0; at < words.length; at += 1) {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    words[at] = state
  }
  for (let at = words.length * 4; at < length; at += 1) out[at] = at & 255
  return out
}

export interface Fixture {
  readonly info: TorrentInfo
  readonly layers: ReadonlyMap<string, Uint8Array>
  readonly files: ReadonlyMap<string, Uint8Array>
  /** `<folder>/<name>/<path>` hold the files. */
  readonly folder: string
  /** A `.torrent` of it. */
  readonly torrentFile: string
  /** An empty folder inside, for a download. */
  target(name: string): Promise<string>
  remove(): Promise<void>
}

/** A torrent with its files on disk. Sizes by path, or the bytes themselves. */
export async function makeTorrent(
  sizes: Readonly<Record<string, number | Uint8Array>>,
  pieceLength: number,
  options: {
    readonly name?: string
    readonly webseeds?: readonly string[]
    readonly trackers?: readonly string[]
    readonly private?: boolean
  } = {}
): Promise<Fixture> {
  // in memory if possible: hundreds of small files are synced.
  const root = await mkdtemp(path.join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'swarm-'))
  const folder = path.join(root, 'seed')
  const name = options.name ?? 'torrent'
  const files = new Map<string, Uint8Array>()
  const layers = new Map<string, Uint8Array>()
  const specs = []
  let seed = 7
  for (const [file, size] of Object.entries(sizes)) {
    const bytes = typeof size === 'number' ? seededBytes(size, (seed += 1)) : size
    files.set(file, bytes)
    const leaves = leafLayer(bytes)
    const root = bytes.length === 0 ? undefined : piecesRoot(leaves, bytes.length)
    if (root !== undefined && bytes.length > pieceLength)
      layers.set(toHex(root), pieceLayer(leaves, bytes.length, pieceLength))
    specs.push({ path: file, length: bytes.length, piecesRoot: root })
    const target = path.join(folder, name, file)
    await mkdir(path.dirname(target), { recursive: true })
    await writeFile(target, bytes)
  }
  const info = buildInfo({ name, pieceLength, files: specs, private: options.private === true })
  const torrentFile = path.join(root, 'a.torrent')
  await writeFile(
    torrentFile,
    encodeTorrent(info, layers, {
      webseeds: options.webseeds ?? [],
      trackers: (options.trackers ?? []).map((url) => [url])
    })
  )
  return {
    info,
    layers,
    files,
    folder,
    torrentFile,
    target: async (name) => {
      const target = path.join(root, name)
      await mkdir(target)
      return target
    },
    remove: () => rm(root, { recursive: true, force: true })
  }
}

export const sha256Hex = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')
