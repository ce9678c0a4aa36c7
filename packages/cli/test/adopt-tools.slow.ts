// `svc adopt` from folders in the layout of each tool.
import {
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync
} from 'node:fs'
import { dirname, join } from 'node:path'
import { makeGguf, makeSafetensors } from '@svc/testkit/models'
import { expect, it, vi } from 'vitest'
import { type TestDaemon, testDaemon, typing } from './support.ts'
import { COMMIT, gitSha1, put, putDocker, putHub, putOllama, sha256 } from './tool-caches.ts'

vi.setConfig({ testTimeout: 60_000 })

const MODEL = { 'config.json': '{"model_type":"llama"}\n', 'tokenizer.json': '{"version":"1.0"}' }
const weights = (seed: number): Buffer => makeGguf({ seed })

interface Shown {
  readonly tool: string
  readonly source: string
  readonly as: string
  readonly hereBytes: number
  readonly sharedBytes: number
  readonly takesBytes: number
  readonly refs: string[]
  readonly damaged: { readonly name: string; readonly path: string }[]
}
const folderOf = (path: string): Record<string, string> =>
  Object.fromEntries(
    readdirSync(path, { recursive: true })
      .map(String)
      .filter((name) => name !== '.svc-view.json' && statSync(join(path, name)).isFile())
      .sort()
      .map((name) => [name, readFileSync(join(path, name)).toString('base64')])
  )
async function adopt(daemon: TestDaemon, ...args: string[]): Promise<{ code: number | null; models: Shown[] }> {
  const { code, stdout, stderr } = await daemon.svc('adopt', ...args, '--json')
  if (stdout === '') throw new Error(stderr)
  return { code, ...JSON.parse(stdout) }
}

it('a hub cache is imported under its names, as the repository at its commit', async () => {
  const daemon = await testDaemon()
  const root = join(daemon.folder, 'hub')
  const gguf = weights(1)
  putHub(root, 'Acme/Tiny-GGUF', { 'Tiny-Q8_0.gguf': gguf, ...MODEL })
  const dry = await adopt(daemon, root, '--dry-run')
  expect(dry.models).toMatchObject([{ tool: 'hf', source: 'Acme/Tiny-GGUF', as: 'acme/tiny-gguf', hereBytes: 0 }])
  expect((await daemon.svc('ls')).stdout).toBe('')

  const done = await adopt(daemon, root)
  expect(done).toMatchObject({ code: 0, models: [{ refs: ['acme/tiny-gguf:q8_0'], damaged: [] }] })
  const shown = JSON.parse((await daemon.svc('show', 'acme/tiny-gguf:q8_0', '--json')).stdout)
  expect(shown.annotations).toMatchObject({ 'svc.hf.repo': 'Acme/Tiny-GGUF', 'svc.hf.revision': COMMIT })
  const path = (await daemon.svc('path', 'acme/tiny-gguf:q8_0')).stdout.trim()
  expect(readFileSync(path).equals(gguf)).toBe(true)
  // there are no hard links, and the cache is unchanged
  const blob = join(root, 'models--Acme--Tiny-GGUF/blobs', sha256(gguf))
  expect([statSync(blob).nlink, statSync(path).ino === statSync(blob).ino]).toEqual([1, false])
  expect((await adopt(daemon, root, '--dry-run')).models[0]).toMatchObject({ hereBytes: gguf.length })
})

it('companions are imported: a view of an adopted cache equals its snapshot, and an LM Studio folder is complete', async () => {
  const daemon = await testDaemon()
  const root = join(daemon.folder, 'hub')
  const beside = {
    'README.md': '# embed\n',
    '1_Pooling/config.json': '{"pooling_mode_cls_token":true}',
    'modules.json': '[]'
  }
  const files = { 'model.safetensors': makeSafetensors(), ...MODEL, ...beside, 'empty.txt': '' }
  putHub(root, 'Acme/Embed', files)
  const maker = join(daemon.folder, '.lmstudio/models/Maker/Model-GGUF')
  put(join(maker, 'Model-Q8_0.gguf'), weights(31))
  put(join(maker, 'README.md'), '# model\n')
  put(join(maker, 'params.json'), '{"n":1}')
  expect(await adopt(daemon, root)).toMatchObject({ code: 0, models: [{ refs: ['acme/embed:bf16'] }] })
  const env = { HOME: daemon.folder }
  const { code, stdout } = await daemon.svcWith(['adopt', 'lmstudio', '--json'], { env })
  expect(code).toBe(0)
  const { models } = JSON.parse(stdout) as { models: Shown[] }
  const viewed = async (ref: string): Promise<Record<string, string>> => {
    const view = join(daemon.folder, 'views', ref.replaceAll(/[/:]/g, '-'))
    mkdirSync(dirname(view), { recursive: true })
    expect(await daemon.svc('view', ref, view)).toMatchObject({ code: 0 })
    return folderOf(view)
  }
  expect(await viewed('acme/embed:bf16')).toEqual(folderOf(join(root, 'models--Acme--Embed/snapshots', COMMIT)))
  const gguf = await viewed(models[0]!.refs[0]!)
  expect(gguf['README.md']).toBe(Buffer.from('# model\n').toString('base64'))
  expect(gguf['params.json']).toBe(Buffer.from('{"n":1}').toString('base64'))
})

it('damage already in a cache is reported, and damaged files are not imported', async () => {
  const daemon = await testDaemon()
  const root = join(daemon.folder, 'hub')
  const [good, bad] = [weights(1), weights(2)]
  putHub(root, 'Acme/Two', { 'a-q8_0.gguf': good, 'a-q4_0.gguf': bad, ...MODEL })
  const folder = join(root, 'models--Acme--Two/blobs')
  const flipped = Buffer.from(bad)
  flipped[flipped.length - 1]! ^= 1
  writeFileSync(join(folder, sha256(bad)), flipped)
  writeFileSync(join(folder, gitSha1(MODEL['tokenizer.json'])), '{"version":"1.1"}')
  const { code, models } = await adopt(daemon, root, '--move')
  expect(code).toBe(5)
  expect(models).toMatchObject([{ refs: ['acme/two:q8_0'] }])
  expect(models[0]!.damaged.map(({ name }) => name).sort()).toEqual(['a-q4_0.gguf', 'tokenizer.json'])
  // a model that was not imported completely keeps its originals
  expect(readdirSync(folder).sort()).toEqual([sha256(good), sha256(bad), ...Object.values(MODEL).map(gitSha1)].sort())
})

it('--move removes the weights from a hub cache, with the links to them', async () => {
  const daemon = await testDaemon()
  const root = join(daemon.folder, 'hub')
  const [gguf, other] = [weights(1), weights(5)]
  putHub(root, 'Acme/Tiny', { 'tiny-q8_0.gguf': gguf, ...MODEL, 'README.md': '# tiny' })
  putHub(root, 'Acme/Other', { 'other-q8_0.gguf': other })
  expect(await adopt(daemon, root, '--move')).toMatchObject({ code: 0 })
  const folder = join(root, 'models--Acme--Tiny')
  expect(readdirSync(join(folder, 'snapshots', COMMIT)).sort()).toEqual(['README.md', 'config.json', 'tokenizer.json'])
  expect(existsSync(join(folder, 'blobs', sha256(gguf)))).toBe(false)
  expect(existsSync(join(root, 'models--Acme--Other/blobs'))).toBe(false)
  const path = (await daemon.svc('path', 'acme/tiny:q8_0')).stdout.trim()
  expect(readFileSync(path).equals(gguf)).toBe(true)
})

it('Ollama, LM Studio, llama.cpp, Docker and folders are imported under their own names', async () => {
  const daemon = await testDaemon()
  const { folder } = daemon
  putOllama(join(folder, '.ollama/models'), 'llama3.2', '1b', weights(11))
  put(join(folder, '.lmstudio/models/Maker/Model-GGUF/Model-Q4_K_M.gguf'), weights(12))
  put(join(folder, '.cache/llama.cpp/acme_flat-q8_0.gguf'), weights(13))
  putDocker(join(folder, '.docker/models'), 'ai/smol:latest', weights(15))
  put(join(folder, 'Plain/plain-q8_0.gguf'), weights(14))
  put(join(folder, 'Plain/model.safetensors'), makeSafetensors())
  const args = ['.ollama/models', '.lmstudio/models/Maker', '.cache/llama.cpp', '.docker/models', 'Plain']
  const { code, models } = await adopt(daemon, ...args)
  expect([code, models.flatMap(({ damaged }) => damaged)]).toEqual([0, []])
  const refs = models.flatMap((model) => model.refs)
  expect(refs).toEqual(expect.arrayContaining(['ollama/llama3.2-1b:q8_0', expect.stringMatching(/:q4_k_m$/)]))
  for (const seed of [11, 12, 13, 14, 15]) {
    const digest = sha256(weights(seed))
    expect([seed, (await daemon.svc('cat', digest)).code]).toEqual([seed, 0])
  }
  // a second import takes no space
  expect((await adopt(daemon, '.ollama/models', '--dry-run')).models[0]!.takesBytes).toBeLessThan(2000)
})

it("RamaLama's folder is found, and its models keep their RamaLama names", async () => {
  const daemon = await testDaemon()
  const root = join(daemon.folder, '.local/share/ramalama/store')
  const bytes = weights(16)
  put(join(root, 'huggingface/acme/tiny-gguf/blobs', `sha256-${sha256(bytes)}`), bytes)
  put(
    join(root, 'huggingface/acme/tiny-gguf/refs/latest.json'),
    JSON.stringify({
      hash: 'x',
      path: 'y',
      files: [{ hash: `sha256:${sha256(bytes)}`, name: 'tiny-q8_0.gguf', type: 'model' }]
    })
  )
  const { code, models } = await adopt(daemon, root)
  expect(code).toBe(0)
  expect(models).toMatchObject([
    { tool: 'ramalama', source: 'huggingface://acme/tiny-gguf:latest', refs: ['acme/tiny-gguf:q8_0'], damaged: [] }
  ])
  expect((await daemon.svc('cat', sha256(bytes))).code).toBe(0)
  const env = { HOME: daemon.folder, RAMALAMA_STORE: join(root, '..') }
  expect((await daemon.svcWith(['adopt', 'ramalama', '--dry-run', '-q'], { env })).stdout).toBe('acme/tiny-gguf\n')
})

it('a model that two tools hold is counted once, and svc asks at a terminal before it imports', async () => {
  const daemon = await testDaemon()
  const { folder } = daemon
  const bytes = weights(18)
  putOllama(join(folder, 'ollama'), 'twice', 'latest', bytes)
  putHub(join(folder, 'hub'), 'Acme/Twice', { 'twice-q8_0.gguf': bytes })
  const both = [join(folder, 'hub'), join(folder, 'ollama')]
  const { models } = await adopt(daemon, ...both, '--dry-run')
  expect(models.map(({ sharedBytes }) => sharedBytes)).toEqual([0, bytes.length])
  expect(models[1]!.takesBytes).toBeLessThan(models[0]!.takesBytes)

  const refused = await daemon.svcWith(['adopt', ...both], { columns: 100, stdin: typing('n') })
  expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('(y/N)') })
  expect((await daemon.svc('ls')).stdout).toBe('')
  const taken = await daemon.svcWith(['adopt', ...both], { columns: 100, stdin: typing('y') })
  expect(taken).toMatchObject({ code: 0, stdout: expect.stringContaining('acme/twice:q8_0\n') })
})

it('--move frees the space of each model before it starts the next', async () => {
  const daemon = await testDaemon()
  const root = join(daemon.folder, 'hub')
  const [first, bad] = [weights(19), weights(20)]
  putHub(root, 'Acme/First', { 'first-q8_0.gguf': first })
  putHub(root, 'Acme/Second', { 'second-q8_0.gguf': bad, 'first-q8_0.gguf': first })
  const second = join(root, 'models--Acme--Second/blobs')
  writeFileSync(join(second, sha256(bad)), 'cut')
  // each repository has a copy of its own: that of the damaged one stays
  expect(await adopt(daemon, root, '--move')).toMatchObject({ code: 5 })
  expect(existsSync(join(root, 'models--Acme--First/blobs', sha256(first)))).toBe(false)
  expect(readdirSync(second).sort()).toEqual([sha256(first), sha256(bad)].sort())
})

it('links that lead out of a cache are not followed', async () => {
  const daemon = await testDaemon()
  const root = join(daemon.folder, 'hub')
  const secret = join(daemon.folder, 'secret-q8_0.gguf')
  writeFileSync(secret, weights(21))
  putHub(root, 'Acme/Tiny', { 'tiny-q8_0.gguf': weights(22) })
  const snapshot = join(root, 'models--Acme--Tiny/snapshots', COMMIT)
  symlinkSync(secret, join(snapshot, 'secret-q8_0.gguf'))
  linkSync(secret, join(daemon.folder, 'other-name'))
  const ran = await daemon.svc('adopt', root, '--move')
  expect(ran).toMatchObject({ code: 0, stdout: expect.stringContaining('acme/tiny:q8_0\n') })
  expect(ran.stderr).toContain('secret-q8_0.gguf')
  expect((await daemon.svc('cat', sha256(weights(21)))).code).toBe(3)
  expect([lstatSync(join(snapshot, 'secret-q8_0.gguf')).isSymbolicLink(), existsSync(secret)]).toEqual([true, true])
})
