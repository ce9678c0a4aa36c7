// `names-process.ts ROOT`: the bound of a list of all repositories. The first one reads each name's file and index, and compares the index with its digest; a
// second one looks whether any of these files has changed. Both read which manifests and states are there from the names in their folders, make
// the text, and parse it as who asks has to.
import { hash } from 'node:crypto'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { beginBound } from './measured.ts'

interface Index {
  readonly members: readonly { readonly quant: string; readonly manifest: string }[]
}

const [root = ''] = process.argv.slice(2)
const hexOf = (digest: string): string => digest.slice('sha256:'.length)
const blob = (digest: string): string =>
  join(root, 'blobs', 'sha256', hexOf(digest).slice(0, 2), hexOf(digest).slice(2))
const isThere = (path: string): boolean => statSync(path, { throwIfNoEntry: false }) !== undefined
const known = new Map<string, { readonly indexDigest: string; readonly index: Index }>()

function entryOf(path: string): { readonly indexDigest: string; readonly index: Index } {
  const hit = known.get(path)
  if (hit !== undefined && isThere(path) && isThere(blob(hit.indexDigest))) return hit
  const { index: indexDigest } = JSON.parse(readFileSync(path, 'utf8')) as { readonly index: string }
  const bytes = readFileSync(blob(indexDigest))
  if (hash('sha256', bytes) !== hexOf(indexDigest)) throw new Error(`${indexDigest} is damaged`)
  const entry = { indexDigest, index: JSON.parse(bytes.toString()) as Index }
  known.set(path, entry)
  return entry
}

/** By digest, without its prefix. */
function present(): { readonly manifests: ReadonlySet<string>; readonly states: ReadonlySet<string> } {
  const blobs = join(root, 'blobs', 'sha256')
  const states = join(root, 'state', 'artifacts')
  return {
    manifests: new Set(
      readdirSync(blobs).flatMap((shard) => readdirSync(join(blobs, shard)).map((name) => shard + name))
    ),
    states: new Set(isThere(states) ? readdirSync(states).map((name) => name.slice(0, -'.json'.length)) : [])
  }
}

function list(): void {
  const namespaces: unknown[] = []
  const { manifests, states } = present()
  const repos = join(root, 'state', 'repos')
  for (const ns of readdirSync(repos)) {
    for (const file of readdirSync(join(repos, ns))) {
      const { indexDigest, index } = entryOf(join(repos, ns, file))
      const members = index.members.map(({ quant, manifest }) => {
        const complete = manifests.has(hexOf(manifest))
        const state = states.has(hexOf(manifest))
        return { quant, manifest, sizeBytes: 0, complete, private: state, missingBytes: 0 }
      })
      const quants = members.map(({ quant }) => quant)
      namespaces.push({ ns, name: file.slice(0, -'.json'.length), indexDigest, indexPresent: true, quants, members })
    }
  }
  JSON.parse(JSON.stringify({ namespaces }))
}

const end = beginBound()
const begun = performance.now()
list()
const firstSeconds = (performance.now() - begun) / 1000
const again: number[] = []
for (let i = 0; i < 3; i++) {
  const from = performance.now()
  list()
  again.push((performance.now() - from) / 1000)
}
end({ seconds: firstSeconds, againSeconds: again.sort((a, b) => a - b)[1]! })
