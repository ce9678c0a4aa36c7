// Folders of tools that follow the store: imports, removals and evictions show in all within a second.
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync
} from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { StandingView } from '@svc/client'
import { startFakeHub } from '@svc/testkit/fake-hub'
import { makeLlamaGgufs, makeProjectorGguf } from '@svc/testkit/llama-gguf'
import { makeGguf, makeModelFolder, makeSafetensors } from '@svc/testkit/models'
import { afterAll, beforeAll, expect, it, onTestFinished, vi } from 'vitest'
import { laterUndo, ok, type TestDaemon, testDaemon } from './support.ts'

vi.setConfig({ testTimeout: 90_000 })
const undo = laterUndo()
const LAYOUTS = ['hf', 'llama', 'lmstudio', 'comfyui', 'ollama'] as const
let daemon: TestDaemon
const at = (...words: string[]): string => join(daemon.folder, ...words)
/** A second is promised, on a machine that does nothing else. */
const soon = <T>(look: () => T) => expect.poll(look, { interval: 20, timeout: 20_000 })
const filesIn = (folder: string): string[] =>
  (existsSync(folder) ? readdirSync(folder, { recursive: true, withFileTypes: true }) : [])
    .filter((entry) => !entry.isDirectory())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .filter((name) => !name.startsWith('.svc/'))
    .sort()

beforeAll(async () => {
  const hub = await startFakeHub()
  undo.later(() => hub.close())
  hub.commit({
    id: 'Acme/Model-7B-GGUF',
    files: [{ path: 'Model-7B-Q8_0.gguf', content: makeGguf({ seed: 3 }), lfs: true }]
  })
  daemon = await testDaemon({ fileConfig: { swarm: { enabled: false }, hub: { endpoint: hub.endpoint } } }, undo.later)
  writeFileSync(at('tiny-q8_0.gguf'), makeGguf({ seed: 1 }))
  await ok(daemon, 'import', 'local', 'tiny-q8_0.gguf', '--as', 'me/tiny')
  // a file of the tool's own, where a model of ours would go
  mkdirSync(at('lmstudio', 'me', 'late'), { recursive: true })
  writeFileSync(at('lmstudio', 'me', 'late', 'late-q8_0.gguf'), 'its own')
  for (const layout of LAYOUTS) expect(await ok(daemon, 'view', 'add', layout, layout)).toBe(at(layout))
}, 90_000)
afterAll(undo.all)

it('each folder has what its tool reads, as links into the store', async () => {
  expect(filesIn(at('llama'))).toEqual(['me--tiny--q8_0.gguf', 'models.ini'])
  expect(filesIn(at('lmstudio'))).toEqual(['me/late/late-q8_0.gguf', 'me/tiny/tiny-q8_0.gguf'])
  const link = at('lmstudio/me/tiny/tiny-q8_0.gguf')
  expect(lstatSync(link).isSymbolicLink()).toBe(true)
  expect(realpathSync(link).startsWith(realpathSync(daemon.root))).toBe(true)
  expect(readFileSync(link)).toEqual(readFileSync(at('tiny-q8_0.gguf')))

  const preset = readFileSync(at('llama/models.ini'), 'utf8')
  expect(preset).toContain(`[me/tiny:q8_0]\nmodel = ${at('llama/me--tiny--q8_0.gguf')}\n`)

  const manifest = JSON.parse(readFileSync(at('ollama/manifests/svc/me/tiny/q8_0'), 'utf8'))
  for (const { digest, size } of [manifest.config, ...manifest.layers])
    expect(statSync(at('ollama/blobs', digest.replace(':', '-'))).size).toBe(size)

  const commit = readFileSync(at('hf/models--me--tiny/refs/main'), 'utf8')
  const snapshot = at('hf/models--me--tiny/snapshots', commit, 'tiny-q8_0.gguf')
  expect(readlinkSync(snapshot)).toMatch(/^\.\.\/\.\.\/blobs\/[0-9a-f]{64}$/)
  expect(readFileSync(snapshot)).toEqual(readFileSync(at('tiny-q8_0.gguf')))
})

it('an import is in all folders within a second, whole, and leaves them so', async () => {
  await ok(daemon, 'import', 'hf', 'Acme/Model-7B-GGUF')
  await soon(() => filesIn(at('ollama')).some((name) => name.includes('acme/model-7b-gguf/q8_0'))).toBe(true)
  await soon(() => filesIn(at('llama'))).toContain('acme--model-7b-gguf--q8_0.gguf')
  await soon(() => filesIn(at('lmstudio')).some((name) => name.startsWith('acme/model-7b-gguf/'))).toBe(true)
  // under the publisher's names
  await soon(() =>
    filesIn(at('hf')).some((name) =>
      /^models--Acme--Model-7B-GGUF\/snapshots\/[0-9a-f]{40}\/Model-7B-Q8_0\.gguf$/.test(name)
    )
  ).toBe(true)

  makeLlamaGgufs({ shards: 2 }).forEach((bytes, i) => writeFileSync(at(`split-q8_0-0000${i + 1}-of-00002.gguf`), bytes))
  writeFileSync(at('mmproj-split-f16.gguf'), makeProjectorGguf())
  await ok(
    daemon,
    'import',
    'local',
    'split-q8_0-00001-of-00002.gguf',
    'mmproj-split-f16.gguf',
    '--as',
    'me/split',
    '--aux',
    'all'
  )
  await soon(() => readdirSync(at('llama')).includes('me--split--q8_0')).toBe(true)
  expect(readdirSync(at('llama/me--split--q8_0')).sort()).toEqual([
    'mmproj-split-f16.gguf',
    'split-q8_0-00001-of-00002.gguf',
    'split-q8_0-00002-of-00002.gguf'
  ])
  await soon(() => readFileSync(at('llama/models.ini'), 'utf8')).toMatch(
    /\[me\/split:q8_0\]\nmodel = .*00001-of-00002\.gguf\nmmproj = .*mmproj-split-f16\.gguf/
  )
  expect(filesIn(at('ollama')).some((name) => name.includes('split'))).toBe(false)

  // safetensors: a folder for the hub's cache, a checkpoint for ComfyUI
  makeModelFolder(at('folder'), { ggufs: {} })
  await ok(daemon, 'import', 'local', 'folder', '--as', 'me/folder')
  await soon(
    () => filesIn(at('hf')).filter((name) => name.startsWith('models--me--folder/snapshots/')).length
  ).toBeGreaterThan(3)
  writeFileSync(at('paint.safetensors'), makeSafetensors())
  await ok(daemon, 'import', 'local', 'paint.safetensors', '--as', 'me/paint')
  await soon(() =>
    filesIn(at('comfyui')).some((name) => /^checkpoints\/me-paint-\w+\/.*\.safetensors$/.test(name))
  ).toBe(true)
  expect(readFileSync(at('comfyui/extra_model_paths.yaml'), 'utf8')).toContain('\n  checkpoints: checkpoints\n')
})

it('a document that claims a repository of the hub is not shown as that repository', async () => {
  await ok(daemon, 'export', 'oci', 'acme/model-7b-gguf:q8_0', at('layout'))
  const other = await testDaemon()
  await ok(other, 'import', 'oci', at('layout'), '--as', 'me/claims')
  expect(await ok(other, 'show', 'me/claims')).toContain('Acme/Model-7B-GGUF')
  await ok(other, 'view', 'add', 'hf', 'hub')
  const hub = join(other.folder, 'hub')
  await soon(() => filesIn(hub).some((name) => name.startsWith('models--me--claims/snapshots/'))).toBe(true)
  expect(filesIn(hub).filter((name) => !name.startsWith('models--me--claims/'))).toEqual([])
})

it('a removal takes away what is ours, and a file of the tool stays', async () => {
  writeFileSync(at('late-q8_0.gguf'), makeGguf({ seed: 9 }))
  await ok(daemon, 'import', 'local', 'late-q8_0.gguf', '--as', 'me/late')
  await soon(() => existsSync(at('llama/me--late--q8_0.gguf'))).toBe(true)
  expect(readFileSync(at('lmstudio/me/late/late-q8_0.gguf'), 'utf8')).toBe('its own')
  expect((await daemon.svc('view')).stderr).toContain(at('lmstudio/me/late/late-q8_0.gguf'))
  await ok(daemon, 'rm', 'me/late:q8_0')
  await soon(() => LAYOUTS.flatMap((layout) => filesIn(at(layout))).filter((name) => /\blate\b/.test(name))).toEqual([
    'me/late/late-q8_0.gguf'
  ])
})

it('what others did to a folder is repaired by svc view, and what they wrote stays', async () => {
  const before = LAYOUTS.map((layout) => filesIn(at(layout)))
  for (const layout of LAYOUTS.filter((each) => each !== 'lmstudio')) rmSync(at(layout), { recursive: true })
  rmSync(at('lmstudio/acme'), { recursive: true })
  const link = at('lmstudio/me/tiny/tiny-q8_0.gguf')
  rmSync(link)
  writeFileSync(link, 'written by the tool')
  const store = await ok(daemon, 'fsck')
  await ok(daemon, 'view')
  expect(LAYOUTS.map((layout) => filesIn(at(layout)))).toEqual(before)
  expect(readFileSync(link, 'utf8')).toBe('written by the tool')
  expect(await ok(daemon, 'fsck')).toBe(store)
})

it('--match shows only these models, and removing a view leaves only what others have there', async () => {
  mkdirSync(at('some'))
  writeFileSync(at('some/of-the-tool.txt'), 'x')
  await ok(daemon, 'view', 'add', 'llama', 'some', '--match', 'me/t*')
  expect(filesIn(at('some'))).toEqual(['me--tiny--q8_0.gguf', 'models.ini', 'of-the-tool.txt'])
  await ok(daemon, 'view', '--rm', 'some')
  expect(filesIn(at('some'))).toEqual(['of-the-tool.txt'])
  expect(existsSync(at('some/.svc'))).toBe(false)
  await ok(daemon, 'view', '--rm', 'comfyui')
  expect(existsSync(at('comfyui'))).toBe(false)
})

it('--copy makes copies, which du tells, which follow, and which a tool may overwrite', async () => {
  const views = [{ layout: 'llama', path: at('copied'), copy: true }] as const
  const other = await testDaemon({ fileConfig: { swarm: { enabled: false }, views } })
  const file = (name: string): string => join(other.folder, 'models/me', name, `${name}-q8_0.gguf`)
  const add = async (name: string, seed: number): Promise<void> => {
    writeFileSync(join(other.folder, `${name}-q8_0.gguf`), makeGguf({ seed }))
    await ok(other, 'import', 'local', `${name}-q8_0.gguf`, '--as', `me/${name}`)
  }
  await add('one', 1)
  await ok(other, 'view', 'add', 'lmstudio', 'models', '--copy')
  expect(lstatSync(file('one')).isFile()).toBe(true)
  expect(readFileSync(file('one'))).toEqual(makeGguf({ seed: 1 }))
  await add('two', 2)
  await soon(() => existsSync(file('two'))).toBe(true)
  const listed = async (): Promise<readonly StandingView[]> => JSON.parse(await ok(other, 'view', '--json')).standing
  await expect
    .poll(async () => new Set((await listed()).map(({ layout, copy, entries }) => `${layout} ${copy} ${entries}`)), {
      timeout: 10_000
    })
    .toEqual(new Set(['llama true 3', 'lmstudio true 2']))
  const standing = await listed()
  const takes = standing.map(({ copiedBytes = 0 }) => copiedBytes)
  const { stderr } = await other.svc('du')
  for (const [i, { path }] of standing.entries())
    expect(stderr.includes(`to free them: svc view --rm ${path}`)).toBe(takes[i]! > 0)
  rmSync(file('one'))
  writeFileSync(file('one'), 'written by the tool')
  await ok(other, 'rm', 'me/two:q8_0')
  await soon(() => existsSync(file('two'))).toBe(false)
  await ok(other, 'view', '--rm', 'models')
  expect(filesIn(join(other.folder, 'models'))).toEqual(['me/one/one-q8_0.gguf'])
  const copy = statSync(at('copied/me--one--q8_0.gguf'))
  await other.pause()
  rmSync(at('copied/models.ini'))
  await other.resume()
  await soon(() => existsSync(at('copied/models.ini'))).toBe(true)
  expect(statSync(at('copied/me--one--q8_0.gguf')).ino).toBe(copy.ino)
})

it('what one hub cache no longer shows stays unpacked for another that does', async () => {
  const other = await testDaemon()
  const within = (...words: string[]): string => join(other.folder, ...words)
  makeModelFolder(within('folder'), { ggufs: {} })
  await ok(other, 'import', 'local', 'folder', '--as', 'x/tiny')
  await ok(other, 'cp', 'x/tiny', 'y/tiny')
  for (const ns of ['x', 'y']) await ok(other, 'view', 'add', 'hf', ns, '--match', `${ns}/*`)
  const name = filesIn(within('y')).find((each) => /snapshots\/.*tokenizer\.json$/.test(each))!
  expect(existsSync(within('y', name))).toBe(true)
  await ok(other, 'rm', 'x/tiny')
  await soon(() => filesIn(within('x'))).toEqual([])
  // folders follow in turns: the first has ended its change when the second shows the next one
  writeFileSync(within('late-q8_0.gguf'), makeGguf({ seed: 9 }))
  await ok(other, 'import', 'local', 'late-q8_0.gguf', '--as', 'y/late')
  await soon(() => filesIn(within('y')).some((each) => each.includes('late-q8_0'))).toBe(true)
  expect(existsSync(within('y', name))).toBe(true)
})

it('a damaged model keeps no other out of a folder of copies, and is named', async () => {
  const other = await testDaemon()
  for (const [i, name] of ['one', 'two'].entries()) {
    writeFileSync(join(other.folder, `${name}-q8_0.gguf`), makeGguf({ seed: i }))
    await ok(other, 'import', 'local', `${name}-q8_0.gguf`, '--as', `me/${name}`)
  }
  const [blob = ''] = (await ok(other, 'path', 'me/one:q8_0')).split('\n')
  const bytes = readFileSync(blob)
  bytes[bytes.length - 1]! ^= 1
  chmodSync(blob, 0o644)
  writeFileSync(blob, bytes)
  const { code, stderr } = await other.svc('view', 'add', 'lmstudio', 'models', '--copy')
  expect([code, stderr]).toEqual([0, expect.stringContaining('warning: not all of me/one:q8_0 is shown')])
  expect(filesIn(join(other.folder, 'models'))).toEqual(['me/two/two-q8_0.gguf'])
  expect(await ok(other, 'view')).toContain('not all of me/one:q8_0 is shown')
})

it("llama-server's router is told of each change, also when it failed before, and needs not run", async () => {
  const asked: string[] = []
  let status = 503
  const router = createServer((request, response) => {
    asked.push(`${request.method} ${request.url}`)
    response.writeHead(status, { 'Content-Type': 'application/json' }).end('{"data":[],"object":"list"}')
  })
  await new Promise<void>((resolve) => router.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void router.close())
  const { port } = router.address() as AddressInfo
  const address = `http://127.0.0.1:${port}`
  const other = await testDaemon({ fileConfig: { swarm: { enabled: false } } })
  const add = async (name: string): Promise<void> => {
    writeFileSync(join(other.folder, `${name}-q8_0.gguf`), makeGguf({ seed: name.length }))
    await ok(other, 'import', 'local', `${name}-q8_0.gguf`, '--as', `me/${name}`)
  }
  await ok(other, 'view', 'add', 'llama', 'models', '--reload', address)
  await expect.poll(async () => await ok(other, 'view')).toContain('it answered 503')
  expect(new Set(asked)).toEqual(new Set(['GET /models?reload=1']))
  status = 200
  const before = asked.length
  await add('one')
  await soon(() => asked.length).toBeGreaterThan(before)
  expect(readFileSync(join(other.folder, 'models/models.ini'), 'utf8')).toContain('[me/one:q8_0]')
  await expect.poll(async () => await ok(other, 'view')).not.toContain('503')
  // a folder that goes is told once more, when it is empty
  await ok(other, 'view', 'add', 'llama', 'going', '--reload', address)
  const going = join(other.folder, 'going')
  expect(existsSync(going)).toBe(true)
  await soon(() => asked.length).toBeGreaterThan(before + 1)
  let wasThere: boolean | undefined
  router.prependListener('request', () => (wasThere = existsSync(going)))
  await ok(other, 'view', '--rm', 'going')
  expect(wasThere).toBe(false)
  router.closeAllConnections()
  await new Promise((resolve) => router.close(resolve))
  await add('three')
  await soon(() => existsSync(join(other.folder, 'models/me--three--q8_0.gguf'))).toBe(true)
  expect(await ok(other, 'view')).not.toContain('was not told')
  for (const [layout, url] of [
    ['llama', 'http://192.0.2.1:8080'],
    ['llama', 'https://127.0.0.1'],
    ['hf', address]
  ] as const)
    expect((await other.svc('view', 'add', layout, 'other', '--reload', url)).stderr).toContain('reload is for')
})

it('after a restart a configured folder is compared, and the command refuses what cannot be', async () => {
  const other = await testDaemon({
    fileConfig: { swarm: { enabled: false }, views: [{ layout: 'lmstudio', path: at('of the configuration') }] }
  })
  writeFileSync(join(other.folder, 'tiny-q8_0.gguf'), makeGguf({ seed: 1 }))
  await ok(other, 'import', 'local', 'tiny-q8_0.gguf', '--as', 'me/tiny')
  const file = at('of the configuration/me/tiny/tiny-q8_0.gguf')
  await soon(() => existsSync(file)).toBe(true)
  await other.pause()
  rmSync(file)
  await other.resume()
  await soon(() => existsSync(file)).toBe(true)
  expect(await other.svc('view', 'add', 'nothing', 'x')).toMatchObject({ code: 2 })
  expect((await other.svc('view', 'add', 'hf', join(other.root, 'views'))).stderr).toContain('within the store')
})
