// `documents-process.ts ROOT`: the bound of a start with many artifacts. Reads what a start has to know of each, synchronously, with the JSON parser
// alone: its name, state, index, manifest, record and piece layers; compares documents with their digests, and looks at each of its blobs. It keeps
// what it read, and makes no torrent, cache or connection of it.
import { hash } from 'node:crypto'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { beginBound } from './measured.ts'

interface Member {
  readonly manifest: string
  readonly distribution: string
}

const [root = ''] = process.argv.slice(2)
const kept: unknown[] = []
const hexOf = (digest: string): string => digest.slice('sha256:'.length)
const blob = (digest: string): string =>
  join(root, 'blobs', 'sha256', hexOf(digest).slice(0, 2), hexOf(digest).slice(2))
const json = (path: string): unknown => JSON.parse(readFileSync(path, 'utf8'))

function verified(digest: string): Buffer {
  const bytes = readFileSync(blob(digest))
  if (hash('sha256', bytes) !== hexOf(digest)) throw new Error(`${digest} is damaged`)
  return bytes
}
function keep<T>(digest: string): T {
  const document = JSON.parse(verified(digest).toString()) as T
  kept.push(document)
  return document
}

const end = beginBound()
const repos = join(root, 'state', 'repos')
for (const ns of readdirSync(repos)) {
  for (const name of readdirSync(join(repos, ns))) {
    const { index } = json(join(repos, ns, name)) as { readonly index: string }
    for (const { manifest, distribution } of keep<{ readonly members: readonly Member[] }>(index).members) {
      kept.push(json(join(root, 'state', 'artifacts', `${hexOf(manifest)}.json`)))
      const { files } = keep<{ readonly files: readonly { readonly digest: string }[] }>(manifest)
      for (const { digest } of files) statSync(blob(digest))
      kept.push(
        verified(
          keep<{ readonly torrent: { readonly pieceLayersDigest: string } }>(distribution).torrent.pieceLayersDigest
        )
      )
    }
  }
}
end()
