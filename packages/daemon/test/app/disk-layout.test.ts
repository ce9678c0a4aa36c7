// docs/disk.md names every file that the daemon keeps, and no other.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { testDaemon } from '../support/daemon.ts'
import { MODEL, writeFiles } from '../support/models.ts'

/** The paths of the layout as patterns: a folder stands for everything below it, `<n hex>` and the like for names. */
const listed = (() => {
  const page = readFileSync(new URL('../../../../docs/disk.md', import.meta.url), 'utf8')
  const [, layout = ''] = /```\n<root>\/\n([\s\S]*?)```/.exec(page)!
  return [...layout.matchAll(/^ {2}(\S+(?: hex>\S*)*) /gm)].map(([, path = '']) => path)
})()
const patternOf = (path: string): RegExp =>
  new RegExp(`^${path.replaceAll('.', '[.]').replaceAll(/<[^>]+>/g, '[^/]+')}${path.endsWith('/') ? '.*' : ''}$`)

test('docs/disk.md lists each file of a used store', async () => {
  const daemon = await testDaemon({ fileConfig: { metrics: { addr: '127.0.0.1:0' } } })
  const model = writeFiles(join(daemon.folder, 'Model'), MODEL)
  expect(await daemon.import([model])).toMatchObject({ state: 'done' })
  const ref = 'svc:///me/model:bf16'
  expect((await daemon.post('/v1/views', { ref })).status).toBe(200)
  expect((await daemon.post('/v1/views', { ref, path: join(daemon.folder, 'named') })).status).toBe(200)
  expect((await daemon.get(`/v1/open?ref=${ref}`)).status).toBe(200)
  const files = readdirSync(daemon.root, { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory())
    .map(({ parentPath, name }) => join(parentPath, name).slice(daemon.root.length + 1))
  expect(files.length).toBeGreaterThan(10)
  expect(files.filter((file) => !listed.some((path) => patternOf(path).test(file)))).toEqual([])
  // files that need a crash, damage, a partial download, an import under way, a move or a reader beside the daemon are not made here
  const seen = listed.filter((path) => files.some((file) => patternOf(path).test(file)))
  const rare = [
    'incoming/<random>.part',
    'incoming/<random>.json',
    'quarantine/',
    'state/tmp/',
    'state/damaged/',
    'moving.json',
    'cache/',
    'leases/<pid>.<start>.<random>',
    'leases/removing',
    'state/jobs/<id>.json'
  ]
  expect(listed.filter((path) => !seen.includes(path) && !rare.includes(path))).toEqual([])
})
