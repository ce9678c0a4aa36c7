import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync
} from 'node:fs'
import { join } from 'node:path'
import { openDiskStore } from '@svc/cas'
import { SVCD } from '@svc/testkit/programs'
import { describe, expect, it, vi } from 'vitest'
import { temporaryFolder, testDaemon } from '../support/daemon.ts'
import { gguf, MODEL, seededBytes, writeFiles } from '../support/models.ts'
import { runSvcd, type SpawnedDaemon, spawnDaemon } from '../support/process.ts'

vi.setConfig({ testTimeout: 120_000 })

interface Home {
  readonly folder: string
  readonly old: string
  readonly to: string
  readonly config: string
}

/** A home folder whose configuration names the store, and a place for the new one. */
function home(): Home {
  const folder = temporaryFolder()
  const [old, to, config] = [join(folder, 'old'), join(folder, 'disk/new'), join(folder, '.config/svc/config.toml')]
  mkdirSync(join(folder, '.config/svc'), { recursive: true })
  writeFileSync(config, `# mine\n[store]\nroot = "${old}" # the small disk\n\n[swarm]\nenabled = false\n`)
  return { folder, old, to, config }
}

const serve = ({ folder }: Home): Promise<SpawnedDaemon> =>
  spawnDaemon({ folder, args: ['--socket', join(folder, 's.sock')] })

async function stop({ child, ended }: SpawnedDaemon): Promise<void> {
  child.kill('SIGTERM')
  expect(await ended).toEqual({ code: 0, signal: null })
}

/** Imports a model through a daemon, which ends. */
async function filled(at: Home): Promise<void> {
  writeFiles(join(at.folder, 'model'), MODEL)
  const daemon = await testDaemon({ folder: at.folder, root: at.old })
  expect(await daemon.import([join(at.folder, 'model')], 'me/model')).toMatchObject({ state: 'done' })
  daemon.agent.destroy()
  await daemon.running.close()
}

/** The content of a folder: names and bytes, and the targets of links. */
function tree(folder: string): Record<string, string> {
  const found: Record<string, string> = {}
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort()) {
    const path = join(folder, name)
    if (lstatSync(path).isFile()) found[name] = readFileSync(path).toString('base64')
  }
  return found
}

const blobsBelow = (root: string): string[] =>
  existsSync(root) ? Object.keys(tree(root)).filter((name) => name.startsWith('blobs/')) : []

/** Looks at folders only, so that it is quick. */
const hasBlob = (root: string): boolean =>
  existsSync(join(root, 'blobs/sha256')) &&
  readdirSync(join(root, 'blobs/sha256')).some((shard) => readdirSync(join(root, 'blobs/sha256', shard)).length > 0)

describe('svcd move', () => {
  it('copies, verifies, writes the new place into the configuration, and keeps the old store unchanged', async () => {
    const at = home()
    await filled(at)
    chmodSync(at.config, 0o640)
    const before = tree(at.old)
    const ran = runSvcd(at.folder, ['move', at.to])
    expect(ran).toMatchObject({ code: 0 })
    expect(ran.out).toContain(at.to)
    expect(tree(at.old)).toEqual(before)
    expect(blobsBelow(at.to)).toEqual(blobsBelow(at.old))
    expect(readFileSync(at.config, 'utf8')).toBe(
      `# mine\n[store]\nroot = "${at.to}" # the small disk\n\n[swarm]\nenabled = false\n`
    )
    expect(statSync(at.config).mode & 0o777).toBe(0o640)
    expect(existsSync(join(at.to, 'views'))).toBe(false)

    const daemon = await serve(at)
    const { files } = (await daemon.open('svc:///me/model:q8_0')).body as { files: { path: string }[] }
    for (const { path } of files) expect(path.startsWith(join(at.to, 'blobs'))).toBe(true)
    const weights = MODEL['tiny-q8_0.gguf'] as Buffer
    expect(files.some(({ path }) => readFileSync(path).equals(weights))).toBe(true)
    // it is in use from here on: no move writes to it
    expect(existsSync(join(at.to, 'moving.json'))).toBe(false)
    await stop(daemon)
    expect(runSvcd(at.folder, ['move', at.to, '--root', at.old])).toMatchObject({ code: 2 })
    expect(runSvcd(at.folder, ['move', at.to])).toMatchObject({ code: 2 })
  })

  it('resumes after kill -9; until it is complete the old store is in use, and the new one is refused', async () => {
    const at = home()
    await filled(at)
    const store = await openDiskStore({ root: at.old })
    const chunks = (seed: number) =>
      (async function* () {
        yield seededBytes(16_384, seed)
      })()
    await Promise.all(Array.from({ length: 1500 }, (_, i) => store.ingest(chunks(i + 100))))
    await store.close()
    const total = blobsBelow(at.old).length
    const before = readFileSync(at.config, 'utf8')

    const child = spawn(process.execPath, [...SVCD, 'move', at.to], {
      env: { PATH: process.env.PATH, HOME: at.folder, NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE },
      stdio: ['ignore', 'ignore', 'pipe']
    })
    const ended = once(child, 'close')
    child.stderr.resume()
    await vi.waitFor(() => expect(hasBlob(at.to)).toBe(true), { timeout: 60_000, interval: 1 })
    child.kill('SIGKILL')
    expect(await ended).toEqual([null, 'SIGKILL'])
    const copied = blobsBelow(at.to).length
    expect(copied).toBeGreaterThan(0)
    expect(copied).toBeLessThan(total)
    expect(readFileSync(at.config, 'utf8')).toBe(before)
    const refused = runSvcd(at.folder, ['--root', at.to, '--socket', join(at.folder, 't.sock')])
    expect(refused).toMatchObject({ code: 2 })
    expect(refused.err).toContain(at.old)

    const daemon = await serve(at)
    // the mover does not take a store from its daemon
    const busy = runSvcd(at.folder, ['move', at.to])
    expect(busy).toMatchObject({ code: 2 })
    expect(busy.err).toContain(`process ${daemon.child.pid} is using`)
    expect(await daemon.import([writeOne(at)], 'me/later')).toMatchObject({ state: 'done' })
    await stop(daemon)

    const again = runSvcd(at.folder, ['move', at.to, '--json'])
    expect(again).toMatchObject({ code: 0, err: '' })
    const result = JSON.parse(again.out)
    expect(result).toMatchObject({ from: at.old, to: at.to, configuration: at.config })
    expect(result.resumedBlobs).toBeGreaterThanOrEqual(copied)
    expect(blobsBelow(at.to)).toEqual(blobsBelow(at.old))
    const moved = await serve(at)
    expect((await moved.open('svc:///me/later:q4_0')).body.files[0].path.startsWith(at.to)).toBe(true)
    await stop(moved)
  })

  it('names a corrupt blob, and changes nothing', async () => {
    const at = home()
    await filled(at)
    const victim = blobsBelow(at.old).sort(
      (a, b) => statSync(join(at.old, b)).size - statSync(join(at.old, a)).size
    )[0]!
    const path = join(at.old, victim)
    const bytes = readFileSync(path)
    bytes[bytes.length >> 1]! ^= 1
    chmodSync(path, 0o600)
    writeFileSync(path, bytes)
    const before = [readFileSync(at.config, 'utf8'), tree(at.old)]
    const ran = runSvcd(at.folder, ['move', at.to])
    expect(ran).toMatchObject({ code: 1, out: '' })
    expect(ran.err).toContain(`sha256:${victim.slice('blobs/sha256/'.length).replace('/', '')}`)
    expect([readFileSync(at.config, 'utf8'), tree(at.old)]).toEqual(before)
    expect(existsSync(join(at.to, victim))).toBe(false)
    expect(JSON.parse(readFileSync(join(at.to, 'moving.json'), 'utf8'))).toEqual({ from: at.old, state: 'copying' })
  })

  it('refuses impossible places before it writes anything', async () => {
    const at = home()
    await filled(at)
    const foreign = join(at.folder, 'foreign')
    mkdirSync(foreign)
    writeFileSync(join(foreign, 'holiday.jpg'), 'x')
    symlinkSync(at.old, join(at.folder, 'link'))
    const before = tree(at.old)
    for (const to of [
      at.old,
      join(at.folder, 'link'),
      join(at.folder, 'link/in/side'),
      foreign,
      at.folder,
      at.config
    ]) {
      const ran = runSvcd(at.folder, ['move', to])
      expect({ to, ...ran }).toMatchObject({ code: 2, out: '' })
      expect(ran.err).toMatch(/^svcd: \S[^\n]*\n$/)
    }
    expect(readdirSync(foreign)).toEqual(['holiday.jpg'])
    expect(tree(at.old)).toEqual(before)
    expect(runSvcd(at.folder, ['move'])).toMatchObject({ code: 2 })
    expect(runSvcd(at.folder, ['move', at.to, '--root', join(at.folder, 'none')])).toMatchObject({ code: 2 })
    expect(existsSync(join(at.folder, 'none'))).toBe(false)
  })

  it('does not edit a configuration that is overridden, and says what to change', async () => {
    const at = home()
    await filled(at)
    const before = readFileSync(at.config, 'utf8')
    const ran = runSvcd(at.folder, ['move', at.to], { SVC_ROOT: at.old })
    expect(ran).toMatchObject({ code: 0 })
    expect(ran.out).toContain(`SVC_ROOT=${at.to}`)
    expect(readFileSync(at.config, 'utf8')).toBe(before)
  })
})

function writeOne({ folder }: Home): string {
  writeFiles(join(folder, 'later'), { 'later-q4_0.gguf': gguf(50_000, 9) })
  return join(folder, 'later')
}
