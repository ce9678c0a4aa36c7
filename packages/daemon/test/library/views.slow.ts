// Views whose copies take long enough to be interrupted.
import { spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { temporaryFolder, testDaemon } from '../support/daemon.ts'
import { gguf, MODEL, writeFiles } from '../support/models.ts'
import { spawnDaemon } from '../support/process.ts'
import { held, makeView, refused, remove, viewsOf } from './view-calls.ts'

const REF = 'svc:///me/model:bf16'
const LARGE_BYTES = 160 << 20
const large = (folder: string): string => writeFiles(join(folder, 'Large'), { 'large-q8_0.gguf': gguf(LARGE_BYTES) })
const LARGE = 'svc:///me/large:q8_0'

test('a view that is being made can be cancelled: an earlier one stays', async () => {
  const daemon = await testDaemon()
  await daemon.import([large(daemon.folder)], 'me/large')
  await daemon.import([writeFiles(join(daemon.folder, 'Model'), MODEL)])
  const folder = join(daemon.folder, 'places')
  mkdirSync(folder)
  const path = join(folder, 'view')
  const earlier = await makeView(daemon, { ref: REF, path })
  const broken = daemon.post('/v1/views', { ref: LARGE, path, mode: 'copy' })
  await vi.waitFor(
    async () => {
      const [entry] = await viewsOf(daemon)
      expect(entry).toMatchObject({ path, present: false, making: { bytesTotal: expect.any(Number) } })
      expect(entry.making.bytesDone).toBeGreaterThan(0)
    },
    { timeout: 20_000, interval: 1 }
  )
  expect((await remove(daemon, path)).body).toEqual({ path, removed: false })
  expect(await refused(broken)).toEqual([409, 'E_ABORTED'])
  expect(readdirSync(folder)).toEqual(['view'])
  expect(readFileSync(join(path, 'config.json'), 'utf8')).toBe(MODEL['config.json'])
  expect(await held(daemon)).toEqual([earlier.manifestDigest])
  expect((await remove(daemon, path)).body).toEqual({ path, removed: true })
})

test('kill -9 during a copy: the earlier view stands, the next request replaces it', async () => {
  const folder = temporaryFolder()
  const first = await spawnDaemon({ folder })
  await first.import([large(folder)], 'me/large')
  await first.import([writeFiles(join(folder, 'Model'), MODEL)])
  const places = join(folder, 'places')
  mkdirSync(places)
  const path = join(places, 'view')
  const earlier = await makeView(first, { ref: REF, path })
  const broken = first.post('/v1/views', { ref: LARGE, path, mode: 'copy' }).catch((error: unknown) => error)
  await vi.waitFor(
    async () => {
      const entries = await viewsOf(first)
      expect(entries[0]?.making?.bytesDone).toBeGreaterThan(0)
    },
    { timeout: 20_000, interval: 1 }
  )
  first.child.kill('SIGKILL')
  await first.ended
  expect(await broken).toBeInstanceOf(Error)
  expect(readFileSync(join(path, 'config.json'), 'utf8')).toBe(MODEL['config.json'])

  const again = await testDaemon({ folder })
  // until the replacement is requested again, both are held: the record names the new one, the place has the old one
  const { manifestDigest } = (await again.resolve(LARGE)).body
  expect((await held(again)).sort()).toEqual([earlier.manifestDigest, manifestDigest].sort())
  const view = await makeView(again, { ref: LARGE, path, mode: 'copy' })
  expect(readdirSync(places)).toEqual(['view'])
  expect(readFileSync(view.loads).length).toBe(LARGE_BYTES + 24)
  expect(await held(again)).toEqual([manifestDigest])
})

const canMount = process.getuid?.() === 0 && spawnSync('mount', ['--version']).status === 0
test.skipIf(!canMount)('an unmounted disk takes no view with it', async () => {
  const daemon = await testDaemon()
  await daemon.import([writeFiles(join(daemon.folder, 'Model'), MODEL)])
  const disk = join(daemon.folder, 'disk')
  const path = join(disk, 'bound/view')
  mkdirSync(join(disk, 'bound'), { recursive: true })
  const run = (...args: string[]): void => expect(spawnSync(args[0]!, args.slice(1)).status, args.join(' ')).toBe(0)
  const mount = (): void => run('mount', '-t', 'tmpfs', '-o', 'size=8m', 'svc-test', disk)
  mount()
  onTestFinished(() => void spawnSync('umount', ['-l', disk]))
  mkdirSync(join(disk, 'bound'))
  const view = await makeView(daemon, { ref: REF, path })
  // the same disk under another name, so that it outlives the unmounting
  const kept = join(daemon.folder, 'kept')
  mkdirSync(kept)
  run('mount', '--bind', disk, kept)
  onTestFinished(() => void spawnSync('umount', ['-l', kept]))
  run('umount', disk)
  expect(await viewsOf(daemon)).toMatchObject([{ path, present: false }])
  expect(await refused(daemon.post('/v1/views', { ref: 'svc:///me/model:q8_0', path }))).toEqual([400, 'E_BAD_REQUEST'])
  await daemon.call('DELETE', '/v1/models/me/model')
  await daemon.finished((await daemon.post('/v1/gc', { graceSeconds: 0, views: true })).body)
  expect([await held(daemon), readdirSync(join(disk, 'bound'))]).toEqual([[view.manifestDigest], []])
  run('mount', '--bind', kept, disk)
  for (const { path: file } of view.files) expect(readFileSync(file).length).toBeGreaterThan(0)
  expect(await viewsOf(daemon)).toMatchObject([{ path, present: true }])
})
