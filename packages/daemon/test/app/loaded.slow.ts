// What a daemon loads: packages that its configuration does not turn on cost it neither time nor memory.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { FileConfig } from '../../src/config/keys.ts'

const PROGRAM = `
import { registerHooks } from 'node:module'
const loaded = new Set()
registerHooks({ load: (url, context, next) => (loaded.add(url), next(url, context)) })
const { startDaemon } = await import('@svc/daemon')
const [folder, fileConfig] = process.argv.slice(-2)
const daemon = await startDaemon({ root: folder + '/root', socketPath: folder + '/s.sock', fileConfig: JSON.parse(fileConfig) })
await daemon.close()
console.log(JSON.stringify([...loaded]))
`

function loadedWith(config: FileConfig): ReadonlySet<string | undefined> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-loaded-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const output = execFileSync(
    process.execPath,
    ['--conditions=svc-source', '--input-type=module', '-e', PROGRAM, '--', folder, JSON.stringify(config)],
    { cwd: new URL('../..', import.meta.url), encoding: 'utf8' }
  )
  const urls = (JSON.parse(output) as string[]).filter((url) => url.startsWith('file:'))
  return new Set(
    urls.map(
      (url) => /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(url)?.[1] ?? /\/packages\/(.+)\/src\//.exec(url)?.[1]
    )
  )
}

const SWARM: FileConfig = { swarm: { enabled: true, dht: false, peer_addr: '127.0.0.1:0' } }
const CATALOG: FileConfig = { ...SWARM, catalog: { endpoint: 'http://127.0.0.1:1' } }
/** What each is loaded for. */
const OPTIONAL: Readonly<Record<string, FileConfig>> = {
  catalog: CATALOG,
  'swarm-v1': CATALOG,
  mirror: { mirror: { hub_addr: '127.0.0.1:0' } },
  sharing: SWARM,
  swarm: SWARM
}
const OFF: FileConfig = { swarm: { enabled: false } }

test('a daemon without optional packages in its configuration loads none of them', { timeout: 120_000 }, () => {
  const loaded = loadedWith(OFF)
  expect(loaded).toContain('library')
  expect(Object.keys(OPTIONAL).filter((name) => loaded.has(name))).toEqual([])
})

test.each(Object.entries(OPTIONAL))('%s is loaded if the configuration says so', { timeout: 120_000 }, (name, config) =>
  expect(loadedWith({ ...OFF, ...config })).toContain(name)
)

test('without a catalog, the engine of its torrents is not loaded', { timeout: 120_000 }, () =>
  expect(loadedWith(SWARM)).not.toContain('swarm-v1')
)
