// Backups of a running daemon, and restores.
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync
} from 'node:fs'
import { join } from 'node:path'
import { type BackedUp, type BackupOptions, backUp, openBackup, openTarget } from '@svc/publish'
import type { Sha256Digest } from '@svc/ref'
import { describe, expect, test } from 'vitest'
import { type RestoreOptions, restoreStore } from '../../../library/src/copying/restore-store.ts'
import { StartError } from '../../src/errors.ts'
import { type TestDaemon, temporaryFolder, testDaemon } from '../support/daemon.ts'
import { gguf, writeFiles } from '../support/models.ts'

async function importModel(daemon: TestDaemon, name: string, seed: number, body: object = {}): Promise<void> {
  const folder = writeFiles(join(daemon.folder, name), { [`${name}-q8_0.gguf`]: gguf(5_000, seed) })
  const { body: job } = await daemon.post('/v1/import/local', { paths: [folder], as: `me/${name}`, ...body })
  expect(await daemon.finished(job)).toMatchObject({ state: 'done' })
}

/** Does what `svc backup` does. */
async function backup(daemon: TestDaemon, to: string, options: Partial<BackupOptions> = {}): Promise<BackedUp> {
  const { status, body } = await daemon.post('/v1/snapshots', {})
  expect(status).toBe(201)
  const target = await openTarget({ kind: 'folder', path: to }, { isPrivate: true })
  try {
    const blobPath = (digest: Sha256Digest) => daemon.running.context.store.blobPath(digest)
    return await backUp(target, { snapshotPath: body.path, blobPath, ...options })
  } finally {
    await target.close()
    expect((await daemon.call('DELETE', `/v1/snapshots/${body.id}`)).status).toBe(200)
    expect(existsSync(body.path)).toBe(false)
  }
}

/** Does what `svcd restore` does. */
async function restore(from: string, root: string, options: Partial<RestoreOptions> = {}) {
  const source = await openTarget({ kind: 'folder', path: from }, { readOnly: true })
  return restoreStore({
    backup: await openBackup(source),
    from,
    root,
    incomplete: false,
    signal: new AbortController().signal,
    onProgress: () => undefined,
    ...options
  })
}

/** Every file below a folder, by path. */
function filesIn(folder: string): Map<string, string> {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  return new Map(
    entries.map(({ parentPath, name }) => {
      const path = join(parentPath, name)
      return [path.slice(folder.length + 1), readFileSync(path, 'base64')]
    })
  )
}
const stateOf = (root: string) => filesIn(join(root, 'state'))
const blobsOf = (root: string) => filesIn(join(root, 'blobs'))

describe('a backup (spec add.43, add.44)', () => {
  test('restores models, tags, private flags and the id byte for byte', async () => {
    const daemon = await testDaemon()
    await importModel(daemon, 'one', 1)
    await importModel(daemon, 'secret', 2, { private: true })
    const to = join(daemon.folder, 'backup')
    const done = await backup(daemon, to)
    expect(done).toMatchObject({ sentBlobs: done.blobs, prunedBlobs: 0 })
    const folder = temporaryFolder()
    const restored = await restore(to, join(folder, 'root'))
    expect(restored).toMatchObject({ storeId: done.storeId, blobs: done.blobs, damaged: [] })
    expect(stateOf(restored.root)).toEqual(stateOf(daemon.root))
    expect(blobsOf(restored.root)).toEqual(blobsOf(daemon.root))
    expect(readFileSync(join(restored.root, 'id'), 'utf8')).toBe(`${done.storeId}\n`)
    const back = await testDaemon({
      folder,
      fileConfig: { swarm: { enabled: false }, store: { expect: done.storeId } }
    })
    expect((await back.get('/v1/models')).body).toEqual((await daemon.get('/v1/models')).body)
    expect(await back.verify('all')).toMatchObject({ state: 'done' })
    for (const name of ['one', 'secret'])
      expect((await back.open(`svc:///me/${name}:q8_0`)).body.missing ?? []).toEqual([])
  })

  test('brings no request of an import: a resumed one counts as its owner’s word', async () => {
    const daemon = await testDaemon()
    await importModel(daemon, 'one', 1)
    mkdirSync(join(daemon.root, 'state/jobs'), { recursive: true })
    const asked = join(daemon.root, 'state/jobs/0123456789abcdef01234567.json')
    writeFileSync(asked, readFileSync(join(daemon.root, 'state/repos/me/one.json')))
    const to = join(daemon.folder, 'backup')
    await backup(daemon, to)
    const { root } = await restore(to, join(temporaryFolder(), 'root'))
    expect([...stateOf(root).keys()].filter((path) => path.startsWith('jobs/'))).toEqual([])
    expect([...stateOf(root).keys()]).toContain('repos/me/one.json')
  })

  test('is readable by its owner only, and says that it contains private models', async () => {
    const daemon = await testDaemon()
    await importModel(daemon, 'secret', 2, { private: true })
    const to = join(daemon.folder, 'backup')
    await backup(daemon, to)
    for (const path of readdirSync(to, { recursive: true }) as string[]) {
      const stat = statSync(join(to, path))
      expect(stat.mode & 0o777, path).toBe(stat.isDirectory() ? 0o700 : 0o600)
    }
    expect(statSync(to).mode & 0o777).toBe(0o700)
    expect(readFileSync(join(to, 'README.txt'), 'utf8')).toContain('private')
    expect(JSON.parse(readFileSync(join(to, 'svc-backup.json'), 'utf8'))).toMatchObject({ holdsPrivateModels: true })
  })

  test('adds what is new; older snapshots stay until they are pruned', async () => {
    const daemon = await testDaemon()
    await importModel(daemon, 'one', 1)
    const to = join(daemon.folder, 'backup')
    const first = await backup(daemon, to)
    expect(await backup(daemon, to)).toMatchObject({ sentBlobs: 0 })
    await importModel(daemon, 'two', 2)
    const second = await backup(daemon, to)
    expect(second.sentBlobs).toBe(second.blobs - first.blobs)
    expect((await daemon.call('DELETE', '/v1/models/me/one')).status).toBe(200)
    const kept = blobsOf(to).size
    expect((await backup(daemon, to)).prunedBlobs).toBe(0)
    expect(blobsOf(to).size).toBe(kept)
    const last = await backup(daemon, to, { prune: true })
    expect(last.prunedBlobs).toBe(kept - last.blobs)
    expect(blobsOf(to).size).toBe(last.blobs)
    expect(readdirSync(join(to, 'snapshots'))).toHaveLength(1)
    const restored = await restore(to, join(temporaryFolder(), 'root'))
    const [before, after] = [stateOf(daemon.root), stateOf(restored.root)]
    expect([...after.keys()].sort()).toEqual([...before.keys()].sort())
    // the backup has none of the removed model's bytes: what its record says of them counts for nothing
    const changed = [...after].filter(([path, text]) => before.get(path) !== text)
    expect(changed.map(([, text]) => JSON.parse(Buffer.from(text, 'base64').toString()).provenance)).toEqual([
      { access: 'unknown', unproven: ['manifest'] }
    ])
  })

  test('accepts only an empty destination or a backup of the same store', async () => {
    const daemon = await testDaemon()
    const full = join(daemon.folder, 'full')
    mkdirSync(full)
    writeFileSync(join(full, 'thesis.txt'), 'years of work')
    await expect(backup(daemon, full)).rejects.toMatchObject({ code: 'E_BAD_TARGET' })
    expect(readdirSync(full)).toEqual(['thesis.txt'])
    const to = join(daemon.folder, 'backup')
    await backup(daemon, to)
    const other = await testDaemon()
    const before = filesIn(to)
    await expect(backup(other, to)).rejects.toMatchObject({ code: 'E_BAD_TARGET' })
    expect(filesIn(to)).toEqual(before)
  })

  test('of a store with a damaged blob names the blob, and keeps the earlier backup', async () => {
    const daemon = await testDaemon()
    await importModel(daemon, 'one', 1)
    const to = join(daemon.folder, 'backup')
    await backup(daemon, to)
    const before = readFileSync(join(to, 'svc-backup.json'), 'utf8')
    await importModel(daemon, 'two', 2)
    const entry = (await daemon.open('svc:///me/two:q8_0')).body.files.find(
      ({ size }: { size: number }) => size > 5_000
    )
    chmodSync(entry.blobPath ?? entry.path, 0o600)
    writeFileSync(entry.blobPath ?? entry.path, Buffer.alloc(entry.size))
    const failure = await backup(daemon, to).catch((error: unknown) => error as Error)
    expect(failure).toMatchObject({ code: 'E_DIGEST_MISMATCH' })
    expect((failure as Error).message).toContain(entry.digest)
    expect(readFileSync(join(to, 'svc-backup.json'), 'utf8')).toBe(before)
    const restored = await restore(to, join(temporaryFolder(), 'root'))
    expect(restored.damaged).toEqual([])
  })

  test('with --verify finds and repairs its own damage', async () => {
    const daemon = await testDaemon()
    await importModel(daemon, 'one', 1)
    const to = join(daemon.folder, 'backup')
    await backup(daemon, to)
    const [path, bytes] = [...blobsOf(to)][0]!
    writeFileSync(join(to, 'blobs', path), Buffer.alloc(Buffer.from(bytes, 'base64').length, 1))
    expect((await backup(daemon, to)).sentBlobs).toBe(0)
    expect((await backup(daemon, to, { verify: true })).sentBlobs).toBe(1)
    expect(blobsOf(to).get(path)).toBe(bytes)
  })
})

describe('a restore', () => {
  const setUp = async (): Promise<{ readonly to: string; readonly daemon: TestDaemon }> => {
    const daemon = await testDaemon()
    await importModel(daemon, 'one', 1)
    await importModel(daemon, 'two', 2)
    const to = join(daemon.folder, 'backup')
    await backup(daemon, to)
    return { to, daemon }
  }

  for (const [name, damage] of Object.entries({
    flipped: (path: string) =>
      writeFileSync(
        path,
        readFileSync(path).map((byte, i) => (i === 0 ? byte ^ 1 : byte))
      ),
    'cut short': (path: string) => writeFileSync(path, readFileSync(path).subarray(1)),
    missing: (path: string) => rmSync(path)
  })) {
    test(`names a file that is ${name}, makes no store, and continues once the file is repaired or skipped`, async () => {
      const { to, daemon } = await setUp()
      const [path, bytes] = [...blobsOf(to)].at(-1)!
      damage(join(to, 'blobs', path))
      const folder = temporaryFolder()
      const root = join(folder, 'root')
      const failure = await restore(to, root).catch((error: unknown) => error as Error)
      expect(failure).toMatchObject({ code: 'E_CORRUPTION' })
      expect((failure as Error).message).toContain(`blobs/${path}`)
      expect((failure as Error).message).toContain(
        `the other ${blobsOf(to).size - (name === 'missing' ? 0 : 1)} are intact`
      )
      const refusal = await testDaemon({ folder }, () => undefined).catch((error: unknown) => error as Error)
      expect(refusal).toBeInstanceOf(StartError)
      expect((refusal as Error).message).toContain(to)
      const partial = join(temporaryFolder(), 'root')
      expect(await restore(to, partial, { incomplete: true })).toMatchObject({ damaged: [`blobs/${path}`] })
      writeFileSync(join(to, 'blobs', path), Buffer.from(bytes, 'base64'))
      expect(await restore(to, root)).toMatchObject({ damaged: [] })
      expect(blobsOf(root)).toEqual(blobsOf(daemon.root))
    })
  }

  test('refuses a damaged snapshot before anything is made', async () => {
    const { to } = await setUp()
    const [snapshot] = readdirSync(join(to, 'snapshots'))
    const path = join(to, 'snapshots', snapshot!)
    writeFileSync(path, readFileSync(path, 'utf8').replace('state', 'stave'))
    const root = join(temporaryFolder(), 'root')
    await expect(restore(to, root)).rejects.toMatchObject({ code: 'E_CHECK_FAILED' })
    expect(existsSync(root)).toBe(false)
  })

  test('needs a missing or empty root that no daemon uses', async () => {
    const { to, daemon } = await setUp()
    const before = filesIn(daemon.root)
    await expect(restore(to, daemon.root)).rejects.toMatchObject({ code: 'E_ROOT' })
    expect(filesIn(daemon.root)).toEqual(before)
    const full = temporaryFolder()
    writeFileSync(join(full, 'thesis.txt'), 'years of work')
    await expect(restore(to, full)).rejects.toMatchObject({ code: 'E_ROOT' })
    expect(readdirSync(full)).toEqual(['thesis.txt'])
  })

  test('reads from a place that cannot be written', async () => {
    const { to } = await setUp()
    const copy = join(temporaryFolder(), 'copy')
    cpSync(to, copy, { recursive: true })
    const before = filesIn(copy)
    await restore(copy, join(temporaryFolder(), 'root'))
    expect(filesIn(copy)).toEqual(before)
    expect(readdirSync(copy).sort()).toEqual(readdirSync(to).sort())
  })
})

describe('a snapshot', () => {
  test('is consistent beside imports, tags, removals and collections', async () => {
    const daemon = await testDaemon()
    let isOver = false
    const work = async (worker: number): Promise<void> => {
      for (let i = 0; !isOver || i < 3; i++) {
        const name = `m${worker}-${i % 3}`
        await importModel(daemon, name, worker * 100 + i)
        await daemon.finished((await daemon.post('/v1/gc', { graceSeconds: 0 })).body)
        if (i % 2 === 1) await daemon.call('DELETE', `/v1/models/me/${name}`)
      }
    }
    const workers = [1, 2, 3].map(work)
    try {
      const to = join(daemon.folder, 'backup')
      for (let round = 0; round < 5; round++) {
        await backup(daemon, to)
        const folder = temporaryFolder()
        await restore(to, join(folder, 'root'))
        const back = await testDaemon({ folder })
        expect(await back.verify('all'), `round ${round}`).toMatchObject({ state: 'done' })
        for (const { ns, name, members } of (await back.get('/v1/models')).body.namespaces)
          for (const { quant } of members) {
            const { status, body } = await back.open(`svc:///${ns}/${name}:${quant}`)
            expect([status, body.missing ?? []]).toEqual([200, []])
          }
        await back.running.close({ quick: true })
      }
    } finally {
      isOver = true
      await Promise.all(workers)
    }
  })

  test('keeps its blobs from a collection while it is held, and not after', async () => {
    const daemon = await testDaemon()
    await importModel(daemon, 'one', 1)
    const { body: snapshot } = await daemon.post('/v1/snapshots', {})
    await daemon.call('DELETE', '/v1/models/me/one')
    const collect = async () => daemon.finished((await daemon.post('/v1/gc', { graceSeconds: 0 })).body)
    expect((await collect()).result).toMatchObject({ blobs: 0 })
    expect((await daemon.call('PUT', `/v1/snapshots/${snapshot.id}`)).status).toBe(200)
    expect((await daemon.call('DELETE', `/v1/snapshots/${snapshot.id}`)).status).toBe(200)
    expect((await daemon.call('PUT', `/v1/snapshots/${snapshot.id}`)).status).toBe(404)
    expect((await collect()).result).toMatchObject({ blobs: snapshot.blobs })
  })

  test('has a limit on how many exist at once', async () => {
    const daemon = await testDaemon()
    const answers = []
    for (let i = 0; i < 10; i++) answers.push((await daemon.post('/v1/snapshots', {})).status)
    expect(new Set(answers)).toEqual(new Set([201, 503]))
  })
})
