// A process that is killed while it changes the folder of a tool leaves each model whole or absent, and the next call does the rest.
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseDigest } from '@svc/ref'
import { removeStanding, type StandingLayout, type StandingModel, syncStanding } from '@svc/view'
import { expect, onTestFinished, test } from 'vitest'

const CHILD = fileURLToPath(new URL('./support/standing-child.ts', import.meta.url))
const KILLS = 12
/** Of a part: long enough to be killed in the midst of its copy. */
const BYTES = 1 << 20

function made(root: string, version: number, i: number): StandingModel {
  const files = [1, 2].map((part) => {
    const name = `m${i}-0000${part}-of-00002.gguf`
    const bytes = Buffer.alloc(BYTES, `${version} ${name} `)
    const hex = createHash('sha256').update(bytes).digest('hex')
    const path = join(root, 'blobs', hex)
    writeFileSync(path, bytes)
    return { name, kind: 'weights.gguf', sizeBytes: BYTES, digest: parseDigest(`sha256:${hex}`), path }
  })
  const config = `{"v":${version},"i":${i}}`
  const configDigest = parseDigest(`sha256:${createHash('sha256').update(config).digest('hex')}`)
  const layers = files.map(({ digest }) => digest)
  const ollama = { manifest: JSON.stringify({ config: configDigest, layers }), config, configDigest, layers }
  const hub = { repo: `acme/m${i}`, commit: createHash('sha1').update(`${version}`).digest('hex') }
  return { ns: 'me', name: `m${i}`, quant: 'q8_0', manifest: layers[0]!, hub, files, ollama }
}

/** What a tool would find broken. */
function broken(layout: StandingLayout, path: string): string[] {
  const found: string[] = []
  const isWhole = (file: string): boolean => {
    const size = statSync(file, { throwIfNoEntry: false })?.size ?? 0
    return size === BYTES || (size > 0 && !file.endsWith('.gguf'))
  }
  const must = (file: string): void => void (isWhole(file) ? 0 : found.push(file))
  const shown = existsSync(path) ? readdirSync(path, { recursive: true }).map(String) : []
  for (const name of shown) if (name.endsWith('.gguf') && !name.startsWith('.svc/')) must(join(path, name))
  const inFolder = (folder: string): string[] => (existsSync(folder) ? readdirSync(folder) : [])
  if (layout === 'llama')
    for (const name of inFolder(path).filter((each) => each.startsWith('me--')))
      expect(inFolder(join(path, name)), name).toHaveLength(2)
  if (layout === 'lmstudio')
    for (const name of inFolder(join(path, 'me'))) expect(inFolder(join(path, 'me', name)), name).toHaveLength(2)
  if (layout === 'ollama')
    for (const name of inFolder(join(path, 'manifests/svc/me'))) {
      const file = join(path, 'manifests/svc/me', name, 'q8_0')
      if (!existsSync(file)) continue
      const { config, layers } = JSON.parse(readFileSync(file, 'utf8'))
      for (const digest of [config, ...layers]) must(join(path, 'blobs', digest.replace(':', '-')))
    }
  if (layout === 'hf')
    for (const name of inFolder(path).filter((each) => each.startsWith('models--'))) {
      const ref = join(path, name, 'refs/main')
      if (!existsSync(ref)) continue
      const snapshot = join(path, name, 'snapshots', readFileSync(ref, 'utf8'))
      expect(inFolder(snapshot), name).toHaveLength(2)
      for (const file of inFolder(snapshot)) must(join(snapshot, file))
    }
  return found
}

test.each<readonly [StandingLayout, string]>([
  ['llama', 'links'],
  ['ollama', 'links'],
  ['hf', 'links'],
  ['llama', 'copies'],
  ['lmstudio', 'copies'],
  ['hf', 'copies']
])(
  'a kill leaves the models of layout %s whole, as %s',
  async (layout, as) => {
    const folder = mkdtempSync(join(tmpdir(), 'svc-standing-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const [root, path] = [join(folder, 'store'), join(folder, 'tool')]
    mkdirSync(join(root, 'blobs'), { recursive: true })
    const sets = [1, 2].map((version) =>
      Array.from({ length: 8 }, (_, i) => made(root, version, version === 1 ? i : i + 4))
    )
    const requests = sets.map((models, i) => ({ layout, path, root, models, key: `${i}`, copy: as === 'copies' }))
    const given = join(folder, 'requests.json')
    writeFileSync(given, JSON.stringify({ requests }))
    for (let kill = 0; kill < KILLS; kill++) {
      const args = ['--conditions=svc-source', CHILD, given]
      const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
      await new Promise((resolve) => child.stdout.once('data', resolve))
      const gone = new Promise((resolve) => child.once('exit', resolve))
      setTimeout(() => child.kill('SIGKILL'), 20 + kill * 7 * (as === 'copies' ? 5 : 1))
      await gone
      expect(broken(layout, path), `kill ${kill}`).toEqual([])
    }
    const request = requests[0]!
    await syncStanding(request)
    expect(broken(layout, path)).toEqual([])
    expect(await syncStanding(request)).toMatchObject({ made: 0, removed: 0, taken: [] })
    // nothing of the other set, and nothing unfinished
    const names = readdirSync(path, { recursive: true }).map(String)
    expect(names.filter((name) => /m1[01]|drafts\//.test(name))).toEqual([])
    // nothing of ours was taken for a file of the tool
    await removeStanding(path, root)
    expect(existsSync(path)).toBe(false)
  },
  120_000
)
