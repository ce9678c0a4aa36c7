import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync
} from 'node:fs'
import { join } from 'node:path'
import { VirtualClock } from '@svc/testkit/virtual-clock'
import { expect, test } from 'vitest'
import { ReplacedFiles } from '../../../internal/state/src/replace.ts'
import { ViewRecords } from '../../../internal/state/src/view-records.ts'
import { type TestDaemon, temporaryFolder, testDaemon } from '../support/daemon.ts'
import { gguf, MODEL, writeFiles } from '../support/models.ts'
import { held, makeView, refused, remove, viewsOf } from './view-calls.ts'

const REF = 'svc:///me/model:bf16'
const GGUF = 'svc:///me/model:q8_0'

async function withModel(options: Parameters<typeof testDaemon>[0] = {}): Promise<TestDaemon> {
  const daemon = await testDaemon(options)
  expect(await daemon.import([writeFiles(join(daemon.folder, 'Model'), MODEL)])).toMatchObject({ state: 'done' })
  return daemon
}

test('the managed view has every file under its real name, and is the same for every caller', async () => {
  const daemon = await withModel()
  const [view, other] = await Promise.all([makeView(daemon, { ref: REF }), makeView(daemon, { ref: REF })])
  const { manifestDigest } = (await daemon.resolve(REF)).body
  expect(view.path).toBe(join(daemon.root, 'views', manifestDigest.slice(7)))
  expect([view.made, other.made].sort()).toEqual([false, true])
  expect(view).toMatchObject({ ref: REF, managed: true, layout: 'files', mode: 'symlink', folder: view.path })
  expect(view.loads).toBe(view.path)
  const names = ['chat_template.jinja', 'config.json', 'model.safetensors', 'modeling_tiny.py', 'tokenizer.json']
  for (const name of names) {
    expect(readFileSync(join(view.path, name)).equals(Buffer.from(MODEL[name]!))).toBe(true)
    expect(view.files).toContainEqual(expect.objectContaining({ name, path: join(view.path, name) }))
  }
  // store and views can be moved together
  expect(readlinkSync(join(view.path, 'model.safetensors'))).toMatch(/^\.\.\/\.\.\/blobs\/sha256\//)
  const weights = await makeView(daemon, { ref: GGUF })
  expect(weights.loads).toBe(join(weights.path, 'tiny-q8_0.gguf'))
  expect(await held(daemon)).toEqual(expect.arrayContaining([manifestDigest, weights.manifestDigest]))
  expect((await viewsOf(daemon)).map(({ path }: { path: string }) => path)).toEqual([view.path, weights.path].sort())
})

test('companions of a view stay as long as the view', async () => {
  const daemon = await testDaemon()
  const importAgain = async (readme: string): Promise<void> => {
    const files = { 'm-q8_0.gguf': gguf(50_000), 'README.md': readme }
    const job = await daemon.import([writeFiles(join(daemon.folder, 'Model'), files)], 'me/model')
    expect(job).toMatchObject({ state: 'done' })
  }
  const collect = async (): Promise<void> =>
    void (await daemon.finished((await daemon.post('/v1/gc', { graceSeconds: 0, views: true })).body))
  const readmeBlob = async (): Promise<string> => {
    const { files } = (await daemon.open(GGUF)).body.companions
    return files.find(({ path }: { readonly path: string }) => path === 'README.md').blobPath
  }
  await importAgain('# first')
  const first = await readmeBlob()
  const path = join(daemon.folder, 'place')
  const { folder: managed } = await makeView(daemon, { ref: GGUF })
  await makeView(daemon, { ref: GGUF, path })
  await importAgain('# second')
  await collect()
  for (const folder of [managed, path]) expect(readFileSync(join(folder, 'README.md'), 'utf8')).toBe('# first')
  // made again, it has the present companions
  await makeView(daemon, { ref: GGUF, path })
  expect(readFileSync(join(path, 'README.md'), 'utf8')).toBe('# second')
  await remove(daemon, managed)
  await collect()
  expect([existsSync(first), existsSync(await readmeBlob())]).toEqual([false, true])
})

test('a hub cache keeps every model in it, also after a restart and while its disk is away', async () => {
  const folder = temporaryFolder()
  const daemon = await withModel({ folder })
  const path = join(folder, 'mount/cache')
  mkdirSync(join(folder, 'mount'))
  const first = await makeView(daemon, { ref: REF, path, layout: 'hf' })
  const second = await makeView(daemon, { ref: GGUF, path, layout: 'hf' })
  expect(second.folder).toBe(first.folder)
  const both = [second.manifestDigest, first.manifestDigest]
  await daemon.call('DELETE', '/v1/models/me/model')
  await daemon.running.close({ quick: true })
  renameSync(join(folder, 'mount'), join(folder, 'away'))
  const again = await testDaemon({ folder })
  expect(await held(again)).toEqual(both)
  renameSync(join(folder, 'away'), join(folder, 'mount'))
  expect(await viewsOf(again)).toMatchObject([{ manifestDigest: both[0], others: [both[1]], needed: false }])
  await again.finished((await again.post('/v1/gc', { graceSeconds: 0, views: true })).body)
  for (const { path: file } of [...first.files, ...second.files]) expect(readFileSync(file).length).toBeGreaterThan(0)
  expect((await remove(again, path)).status).toBe(200)
  expect(await held(again)).toEqual([])
})

test('removing one model of a hub cache leaves the others loadable, and frees only its blobs', async () => {
  const daemon = await withModel()
  const path = join(daemon.folder, 'cache')
  const first = await makeView(daemon, { ref: REF, path, layout: 'hf', mode: 'copy' })
  const second = await makeView(daemon, { ref: GGUF, path, layout: 'hf', mode: 'copy' })
  const records = new ViewRecords(daemon.root, await ReplacedFiles.open(join(daemon.root, 'state')))
  const both = (await records.read(path))!
  expect((await remove(daemon, path, GGUF)).body).toEqual({ path, removed: true })
  expect(await held(daemon)).toEqual([first.manifestDigest])
  expect(await records.read(path)).toMatchObject({ manifest: first.manifestDigest, others: [] })
  expect(readFileSync(join(first.folder, 'model.safetensors')).equals(Buffer.from(MODEL['model.safetensors']!))).toBe(
    true
  )
  expect(existsSync(second.loads)).toBe(false)
  expect(await refused(remove(daemon, path, GGUF))).toEqual([404, 'E_NOT_FOUND'])
  expect(await refused(remove(daemon, path, 'svc:///me/none:q8_0'))).toEqual([404, 'E_UNKNOWN_REF'])
  // after a kill before the record was written, the list corrects it, also where the latest model stays
  await records.write({ ...both, manifest: first.manifestDigest, others: [second.manifestDigest] })
  expect(await held(daemon)).toContain(second.manifestDigest)
  await viewsOf(daemon)
  expect(await held(daemon)).toEqual([first.manifestDigest])
  // also without a name
  await daemon.call('DELETE', '/v1/models/me/model')
  expect((await remove(daemon, path, `svc:///me/model@${first.manifestDigest}`)).status).toBe(200)
  expect([existsSync(path), await viewsOf(daemon), await held(daemon)]).toEqual([false, [], []])
})

test.each(['symlink', 'copy', 'hardlink'] as const)(
  'a view at a named place, by %s, stays after a restart',
  async (mode) => {
    const folder = temporaryFolder()
    const daemon = await withModel({ folder })
    const path = join(folder, 'view')
    const view = await makeView(daemon, { ref: REF, path, mode })
    expect(view).toMatchObject({ path, managed: false, mode, made: true })
    expect(await makeView(daemon, { ref: REF, path, mode })).toMatchObject({ made: false })
    await daemon.running.close({ quick: true })

    const again = await testDaemon({ folder })
    expect(await viewsOf(again)).toEqual([
      { path, managed: false, manifestDigest: view.manifestDigest, layout: 'files', mode, present: true, needed: true }
    ])
    expect(await held(again)).toEqual([view.manifestDigest])
    // another artifact takes the place: the first one is released
    const next = await makeView(again, { ref: GGUF, path, mode })
    expect(readdirSync(path)).toContain('tiny-q8_0.gguf')
    expect(await held(again)).toEqual([next.manifestDigest])
    expect((await remove(again, path)).body).toEqual({ path, removed: true })
    expect([existsSync(path), await viewsOf(again), await held(again)]).toEqual([false, [], []])
    expect(await refused(remove(again, path))).toEqual([404, 'E_NOT_FOUND'])
    expect((await again.open(GGUF)).body.missing).toBeUndefined()
  }
)

test('after a kill between the record of a view and the view itself, the list names what is there', async () => {
  const daemon = await withModel()
  const path = join(daemon.folder, 'view')
  const { manifestDigest } = await makeView(daemon, { ref: REF, path })
  const next = await makeView(daemon, { ref: GGUF, path: join(daemon.folder, 'other') })
  // the record of a replacement is durable before it is there
  const records = new ViewRecords(daemon.root, await ReplacedFiles.open(join(daemon.root, 'state')))
  const record = (await records.read(path))!
  await records.write({ ...record, manifest: next.manifestDigest, layout: 'hf', mode: 'copy' })
  const listed = async () => (await viewsOf(daemon)).find((view: { path: string }) => view.path === path)
  const isThere = { manifestDigest, layout: 'files', mode: 'symlink', present: true }
  expect(await listed()).toMatchObject(isThere)
  expect(await records.read(path)).toEqual(record)
  expect(await held(daemon)).toContain(manifestDigest)
})

test("a hub cache uses the hub's repository name if it is known, else the local name", async () => {
  const daemon = await withModel()
  const path = join(daemon.folder, 'cache')
  const view = await makeView(daemon, { ref: GGUF, path, layout: 'hf' })
  expect(view.folder).toMatch(/\/cache\/models--me--model\/snapshots\/[0-9a-f]{40}$/)
  expect(readFileSync(view.loads).equals(Buffer.from(MODEL['tiny-q8_0.gguf']!))).toBe(true)
  const managed = await makeView(daemon, { ref: GGUF, layout: 'hf' })
  expect(managed.path).toBe(join(daemon.root, 'views', `${view.manifestDigest.slice(7)}-hf`))
})

test('an occupied or impossible place is refused and not changed', async () => {
  const daemon = await withModel()
  const { folder, root } = daemon
  const [own, file, link] = ['own', 'file', 'link'].map((name) => join(folder, name)) as [string, string, string]
  mkdirSync(own)
  writeFileSync(join(own, 'thesis.txt'), 'mine')
  writeFileSync(file, 'mine')
  symlinkSync(own, link)
  const bad: object[] = [
    { path: own },
    { path: file },
    { path: link },
    { path: 'relative' },
    { path: join(root, 'state', 'x') },
    { path: join(link, '..', 'root', 'blobs') },
    { path: join(folder, 'absent', 'view') },
    { mode: 'copy' },
    { path: join(folder, 'v'), holdSeconds: 5 },
    { holdSeconds: 0 },
    { layout: 'oci' }
  ]
  for (const body of bad) {
    expect([body, await refused(daemon.post('/v1/views', { ref: REF, ...body }))]).toEqual([
      body,
      [400, 'E_BAD_REQUEST']
    ])
  }
  expect(await refused(daemon.post('/v1/views', {}))).toEqual([400, 'E_BAD_REQUEST'])
  expect(await refused(daemon.post('/v1/views', { ref: 'svc:///me/none:bf16' }))).toEqual([404, 'E_UNKNOWN_REF'])
  expect(await refused(remove(daemon, own))).toEqual([400, 'E_BAD_REQUEST'])
  expect(readFileSync(join(own, 'thesis.txt'), 'utf8')).toBe('mine')
  expect([await viewsOf(daemon), await held(daemon)]).toEqual([[], []])
})

test('missing blobs are reported by digest, and no view is made', async () => {
  const daemon = await withModel()
  const { files } = (await daemon.open(REF)).body as { files: { digest: string; path: string; kind?: string }[] }
  const gone = files.filter(({ kind }) => kind === 'weights.safetensors' || kind === 'chat-template')
  for (const { path } of gone) rmSync(path)
  const { status, body } = await daemon.post('/v1/views', { ref: REF, path: join(daemon.folder, 'view') })
  expect([status, body.error.code]).toEqual([404, 'E_NOT_FOUND'])
  expect(body.error.candidates.sort()).toEqual(gone.map(({ digest }) => digest).sort())
  expect([existsSync(join(daemon.folder, 'view')), await viewsOf(daemon), await held(daemon)]).toEqual([false, [], []])
})

test('a view deleted by hand keeps no artifact; one on a missing disk does', async () => {
  const daemon = await withModel()
  const [here, away] = [join(daemon.folder, 'here'), join(daemon.folder, 'disk', 'away')]
  mkdirSync(join(daemon.folder, 'disk'))
  const view = await makeView(daemon, { ref: REF, path: here })
  rmSync(here, { recursive: true })
  expect([await held(daemon), await viewsOf(daemon)]).toEqual([[], []])
  await makeView(daemon, { ref: REF, path: away })
  rmSync(join(daemon.folder, 'disk'), { recursive: true })
  expect(await held(daemon)).toEqual([view.manifestDigest])
  expect(await viewsOf(daemon)).toMatchObject([{ path: away, present: false }])
  expect((await remove(daemon, away)).body).toEqual({ path: away, removed: false })
  expect(await held(daemon)).toEqual([])
})

test('a view whose disk is away is replaced by none, and keeps its artifact, until it is forgotten', async () => {
  const daemon = await withModel()
  const disk = join(daemon.folder, 'disk')
  const path = join(disk, 'view')
  mkdirSync(disk)
  const view = await makeView(daemon, { ref: REF, path })
  const records = new ViewRecords(daemon.root, await ReplacedFiles.open(join(daemon.root, 'state')))
  // as if the folder were the mount point of a disk
  await records.write({ ...(await records.read(path))!, device: '1' })
  renameSync(disk, join(daemon.folder, 'away'))
  mkdirSync(disk)
  expect(await refused(daemon.post('/v1/views', { ref: GGUF, path }))).toEqual([400, 'E_BAD_REQUEST'])
  expect([readdirSync(disk), await held(daemon)]).toEqual([[], [view.manifestDigest]])
  await daemon.call('DELETE', '/v1/models/me/model')
  await daemon.finished((await daemon.post('/v1/gc', { graceSeconds: 0, views: true })).body)
  rmSync(disk, { recursive: true })
  renameSync(join(daemon.folder, 'away'), disk)
  for (const { path: file } of view.files) expect(readFileSync(file).length).toBeGreaterThan(0)
  rmSync(path, { recursive: true })
  await daemon.import([join(daemon.folder, 'Model')])
  expect((await remove(daemon, path)).body).toEqual({ path, removed: false })
  expect(await makeView(daemon, { ref: GGUF, path })).toMatchObject({ made: true })
})

test('a held managed view is not removed before its time', async () => {
  const clock = new VirtualClock(Date.UTC(2026, 4, 1))
  const daemon = await withModel({ clock })
  const view = await makeView(daemon, { ref: REF, holdSeconds: 60 })
  expect(view.heldUntil).toBe('2026-05-01T00:01:00.000Z')
  await clock.advance(59_000)
  expect(await refused(remove(daemon, view.path))).toEqual([400, 'E_BAD_REQUEST'])
  await clock.advance(2_000)
  expect((await remove(daemon, view.path)).status).toBe(200)
})

/** Large enough to be seen while it is copied. */
