// The store's folder is removed, emptied or replaced while the daemon runs: no command then reports success.
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { askCommand } from '../../src/commands/probe.ts'
import { type Answer, type TestDaemon, temporaryFolder, testDaemon } from '../support/daemon.ts'
import { MODEL, writeFiles } from '../support/models.ts'

const REF = 'svc:///me/model:bf16'
const MISSING = `sha256:${'a'.repeat(64)}`

/** Everything that answers from the store, by the name that a person would use. */
function commands(daemon: TestDaemon): Readonly<Record<string, () => Promise<Answer>>> {
  const source = join(daemon.folder, 'Model')
  return {
    ls: () => daemon.get('/v1/models'),
    status: () => daemon.get('/v1/status'),
    resolve: () => daemon.resolve(REF),
    'resolve of what is unknown': () => daemon.resolve('svc:///me/other:bf16'),
    open: () => daemon.open(REF),
    blob: () => daemon.get(`/v1/blob/${MISSING}`),
    ensure: () => daemon.post('/v1/ensure', { ref: REF }),
    fsck: () => daemon.post('/v1/verify', { target: 'all' }),
    'fsck of one': () => daemon.post('/v1/verify', { target: REF }),
    gc: () => daemon.post('/v1/gc', {}),
    rm: () => daemon.call('DELETE', '/v1/models/me/model'),
    import: () => daemon.post('/v1/import/local', { paths: [source], as: 'me/again' }),
    private: () => daemon.call('PUT', '/v1/private', { body: { ref: REF, private: true } }),
    views: () => daemon.get('/v1/views'),
    view: () => daemon.post('/v1/views', { ref: REF })
  }
}

const httpStatus = (address: string, path: string): Promise<number> =>
  new Promise((resolve, reject) => {
    const [host, port] = address.split(':')
    const call = request({ host, port, path, agent: false }, (response) => {
      response.resume().on('end', () => resolve(response.statusCode!))
    })
    call.on('error', reject).end()
  })

interface ManyDoors extends TestDaemon {
  /** Addresses of the probes' port and of the mirrors. */
  readonly probes: string
  readonly mirrors: readonly string[]
}

/** A daemon with one model, a port for probes, and mirrors. */
async function withModel(root?: string): Promise<ManyDoors> {
  const any = '127.0.0.1:0'
  const fileConfig = { swarm: { enabled: false }, metrics: { addr: any }, mirror: { hub_addr: any, oci_addr: any } }
  const daemon = await testDaemon({ fileConfig, ...(root !== undefined && { folder: root }) })
  const model = writeFiles(join(daemon.folder, 'Model'), MODEL)
  expect(await daemon.import([model])).toMatchObject({ state: 'done' })
  const facts = JSON.parse(readFileSync(join(daemon.folder, 'runtime.json'), 'utf8'))
  const mirrors: string[] = [facts.hubMirrorAddress, facts.ociMirrorAddress]
  return Object.assign(daemon, { probes: facts.metricsAddress as string, mirrors })
}

async function expectFailure(daemon: ManyDoors): Promise<void> {
  for (const [name, call] of Object.entries(commands(daemon))) {
    const { status, body } = await call()
    expect([status, body?.error?.code], name).toEqual([500, 'E_INTERNAL'])
  }
  for (const question of ['ready', 'health', 'metrics'] as const)
    await expect(askCommand(question, daemon.socketPath), question).rejects.toThrow()
  expect(await httpStatus(daemon.probes, '/healthz')).toBe(503)
  expect(await httpStatus(daemon.probes, '/readyz')).toBe(503)
  expect(await httpStatus(daemon.probes, '/metrics')).toBe(500)
  for (const mirror of daemon.mirrors) expect(await httpStatus(mirror, '/v2/')).toBe(503)
  // what tells about jobs needs no store
  expect((await daemon.get('/v1/jobs')).status).toBe(200)
}

async function expectHealth(daemon: ManyDoors): Promise<void> {
  expect(await askCommand('ready', daemon.socketPath)).toBe('ok\n')
  expect(await httpStatus(daemon.probes, '/healthz')).toBe(200)
  for (const mirror of daemon.mirrors) expect(await httpStatus(mirror, '/v2/')).not.toBe(503)
  expect((await daemon.resolve(REF)).status).toBe(200)
  expect(await daemon.verify('all')).toMatchObject({ state: 'done' })
}

describe('a store that goes away under its daemon (spec disk.22)', () => {
  const ways: Readonly<Record<string, (root: string, away: string) => void>> = {
    'is renamed away': (root, away) => renameSync(root, away),
    'has an empty folder in its place': (root, away) => {
      renameSync(root, away)
      mkdirSync(root, { mode: 0o700 })
    },
    'has another store in its place': (root, away) => {
      renameSync(root, away)
      cpSync(away, root, { recursive: true })
    }
  }
  for (const [name, takeAway] of Object.entries(ways)) {
    test(`${name}: every command fails, nothing is written, and everything works when the store is back`, async () => {
      const daemon = await withModel()
      const away = join(daemon.folder, 'away')
      takeAway(daemon.root, away)
      const look = (): unknown => existsSync(daemon.root) && readdirSync(daemon.root, { recursive: true }).sort()
      const before = look()
      await expectFailure(daemon)
      expect(look()).toEqual(before)
      rmSync(daemon.root, { recursive: true, force: true })
      renameSync(away, daemon.root)
      await expectHealth(daemon)
    })
  }

  const isRoot = process.getuid?.() === 0
  const canMount = isRoot && spawnSync('mount', ['--version']).status === 0
  test.skipIf(!canMount)('is unmounted (umount -l): every command fails, and the mount point stays empty', async () => {
    const folder = temporaryFolder()
    const root = join(folder, 'root')
    mkdirSync(root, { mode: 0o700 })
    const mount = (...args: string[]): void => expect(spawnSync(args[0]!, args.slice(1)).status, args.join(' ')).toBe(0)
    mount('mount', '-t', 'tmpfs', '-o', 'size=64m,mode=0700', 'svc-test', root)
    onTestFinished(() => void spawnSync('umount', ['-l', root]))
    const daemon = await withModel(folder)
    mount('umount', '-l', root)
    await expectFailure(daemon)
    expect(readdirSync(root)).toEqual([])
    // another file system over it is another store, and is left alone
    mount('mount', '-t', 'tmpfs', '-o', 'size=64m,mode=0700', 'svc-test', root)
    await expectFailure(daemon)
    expect(readdirSync(root)).toEqual([])
  })

  for (const each of [
    'blobs',
    'blobs/sha256',
    'incoming',
    'quarantine',
    'state/repos',
    'state/artifacts',
    'state/views',
    'state'
  ]) {
    test(`loses ${each}: no command treats it as empty`, async () => {
      const daemon = await withModel()
      renameSync(join(daemon.root, each), join(daemon.folder, 'away'))
      for (const [name, call] of Object.entries(commands(daemon))) {
        // what a resolve needs is there, and it looks at no more
        if (name === 'resolve' && !['state', 'state/repos'].includes(each)) continue
        if (name === 'blob' && !each.startsWith('blobs')) continue
        const { status, body } = await call()
        expect([status, body?.error?.code], name).toEqual([500, 'E_INTERNAL'])
      }
      await expect(askCommand('ready', daemon.socketPath)).rejects.toThrow()
      renameSync(join(daemon.folder, 'away'), join(daemon.root, each))
      await expectHealth(daemon)
    })
  }

  test('a running import fails, and writes nothing into the folder in its place', async () => {
    const daemon = await withModel()
    const model = writeFiles(join(daemon.folder, 'Big'), {
      'model-q8_0.gguf': Buffer.concat([MODEL['tiny-q8_0.gguf'] as Buffer, Buffer.alloc(64 << 20)])
    })
    const { body } = await daemon.post('/v1/import/local', { paths: [model], as: 'me/big' })
    renameSync(daemon.root, join(daemon.folder, 'away'))
    mkdirSync(daemon.root, { mode: 0o700 })
    expect(await daemon.finished(body)).toMatchObject({ state: 'failed', error: { code: 'E_INTERNAL' } })
    expect(readdirSync(daemon.root)).toEqual([])
  })
})
