// Repositories in formats that no row of the table takes, as svc imports, keeps and gives them.

import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type FakeHub, startFakeHub } from '@svc/testkit/fake-hub'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { laterUndo, type TestDaemon, testDaemon, typing } from './support.ts'

const undo = laterUndo()
const text = (content: string): Buffer => Buffer.from(content)
/** As PyTorch begins one. */
const PICKLE = Buffer.from([0x80, 2, 0x8a, 10, 1, 2, 3, 4])
const ONNX = {
  'config.json': text('{"model_type":"bert"}'),
  'tokenizer.json': text('{"version":"1.0"}'),
  'README.md': text('# ONNX'),
  LICENSE: text('my own licence'),
  'onnx/model.onnx': Buffer.alloc(1_100_000, 1),
  'onnx/model_q4.onnx': Buffer.alloc(90_000, 2)
}
const WHISPER = {
  'ggml-tiny.bin': Buffer.concat([text('lmgg'), Buffer.alloc(50_000, 3)]),
  'ggml-base.bin': Buffer.concat([text('lmgg'), Buffer.alloc(70_000, 4)]),
  'README.md': text('# whisper')
}
let hub: FakeHub
let daemon: TestDaemon
let folder: string

const listed = (files: Readonly<Record<string, Buffer>>) =>
  Object.entries(files).map(([path, content]) => ({ path, content }))

beforeAll(async () => {
  hub = await startFakeHub({})
  undo.later(() => hub.close())
  hub.commit({ id: 'acme/onnx', files: listed(ONNX) })
  hub.commit({ id: 'acme/whisper', files: listed(WHISPER) })
  hub.commit({ id: 'acme/far', files: listed({ 'far.tflite': Buffer.alloc(80_000, 7) }) })
  hub.commit({ id: 'acme/pickled', files: listed({ 'net.pth': PICKLE, 'notes.txt': text('n') }) })
  // its name does not tell
  hub.commit({ id: 'acme/hidden-pickle', files: listed({ 'weights.bin': PICKLE, 'a.tflite': text('TFL3') }) })
  daemon = await testDaemon({ fileConfig: { swarm: { enabled: false }, hub: { endpoint: hub.endpoint } } }, undo.later)
  folder = mkdtempSync(join(tmpdir(), 'svc-opaque-'))
  undo.later(() => rmSync(folder, { recursive: true, force: true }))
}, 60_000)
afterAll(undo.all)

it('a repository that no row takes is refused with what it is, and what imports it', async () => {
  const refused = await daemon.svc('import', 'hf', 'acme/onnx')
  expect(refused).toMatchObject({ code: 1, stdout: '' })
  expect(refused.stderr).toContain('ONNX ("onnx/model.onnx" and 1 more)')
  expect(refused.stderr).toMatch(/hint: --opaque /)
  expect((await daemon.svc('import', 'hf', 'acme/whisper')).stderr).toContain(
    'whisper.cpp ("ggml-base.bin" and 1 more)'
  )
  expect((await daemon.svc('ls', '-q')).stdout).toBe('')
})

it('at a terminal it is a question', async () => {
  const asked = (answer: string) =>
    daemon.svcWith(['import', 'hf', 'acme/onnx', '--as', 'asked/onnx'], { columns: 200, stdin: typing(answer) })
  const no = await asked('n')
  expect(no.code).toBe(1)
  const yes = await asked('y')
  expect(yes).toMatchObject({ code: 0, stdout: 'asked/onnx:raw\n' })
  expect(yes.stderr).toContain('Import every file as it is?')
})

it('--opaque takes every file as it is: one artifact, raw', async () => {
  expect(await daemon.svc('import', 'hf', 'acme/onnx', '--opaque')).toMatchObject({
    code: 0,
    stdout: 'acme/onnx:raw\n'
  })
  const shown = JSON.parse((await daemon.svc('show', 'acme/onnx:raw', '--json')).stdout)
  const files = shown.files.filter(({ kind }: { kind?: string }) => kind === 'opaque')
  expect(files.map(({ name }: { name: string }) => name).sort()).toEqual(Object.keys(ONNX).sort())
  expect(shown.annotations['svc.license']).toMatch(/^LicenseRef-sha256-/)
  const dir = (await daemon.svc('path', 'acme/onnx')).stdout.trim()
  for (const [name, content] of Object.entries(ONNX)) expect(readFileSync(join(dir, name)).equals(content)).toBe(true)
})

it('globs choose, and what goes with any file comes along', async () => {
  const ran = await daemon.svc('import', 'hf', 'acme/onnx', '--opaque', '--file', 'model_q4.onnx', '--as', 'acme/q4')
  expect(ran).toMatchObject({ code: 0, stdout: 'acme/q4:raw\n' })
  const dir = (await daemon.svc('path', '--dir', 'acme/q4')).stdout.trim()
  expect(readFileSync(join(dir, 'onnx/model_q4.onnx')).length).toBe(90_000)
  expect(readFileSync(join(dir, 'tokenizer.json'), 'utf8')).toBe('{"version":"1.0"}')
  // companions, like those of any model
  expect(readFileSync(join(dir, 'README.md'), 'utf8')).toBe('# ONNX')
  expect(() => readFileSync(join(dir, 'onnx/model.onnx'))).toThrow(/ENOENT/)
  const none = await daemon.svc('import', 'hf', 'acme/onnx', '--opaque', '--file', '*.tflite', '--as', 'acme/none')
  expect(none.code).toBe(1)
})

it('a single file has a path of its own', async () => {
  expect((await daemon.svc('import', 'hf', 'acme/whisper', '--opaque', '--file', 'ggml-tiny.bin')).code).toBe(0)
  const path = (await daemon.svc('path', 'acme/whisper')).stdout.trim()
  expect(path).toMatch(/\/ggml-tiny\.bin$/)
  expect(readFileSync(path).equals(WHISPER['ggml-tiny.bin'])).toBe(true)
})

it.each([
  ['by name', 'acme/pickled', 'net.pth'],
  ['by its first bytes', 'acme/hidden-pickle', 'weights.bin']
])('a pickle, told %s, needs --allow-pickle', async (_, repo, name) => {
  const sent = hub.bytesSent.get(name) ?? 0
  const refused = await daemon.svc('import', 'hf', repo, '--opaque')
  expect(refused.code).toBe(1)
  expect(refused.stderr).toContain(`"${name}" is a pickle`)
  expect(refused.stderr).toContain('hint: --allow-pickle')
  expect((hub.bytesSent.get(name) ?? 0) - sent).toBeLessThanOrEqual(PICKLE.length)
  const taken = await daemon.svc('import', 'hf', repo, '--opaque', '--allow-pickle')
  expect(taken).toMatchObject({ code: 0, stdout: `${repo}:raw\n` })
  expect(taken.stderr).toContain(`"${name}" can run code when loaded`)
})

it('a folder comes without what is hidden or secret, and makes the same artifact', async () => {
  const own: Record<string, Buffer> = { ...ONNX, '.git/config': text('g'), id_rsa: text('s'), '.env': text('e') }
  for (const [name, content] of Object.entries(own)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), content)
  }
  expect((await daemon.svc('import', 'local', folder, '--as', 'me/onnx', '--private')).stderr).toContain(
    'hint: --opaque'
  )
  expect((await daemon.svc('import', 'local', folder, '--as', 'me/onnx', '--private', '--opaque')).code).toBe(0)
  const dir = (await daemon.svc('path', 'me/onnx')).stdout.trim()
  expect(readFileSync(join(dir, 'onnx/model.onnx')).equals(ONNX['onnx/model.onnx'])).toBe(true)
  for (const name of ['.git/config', 'id_rsa', '.env']) expect(() => readFileSync(join(dir, name))).toThrow(/ENOENT/)
})

it('through an OCI layout it comes back as the same artifact', async () => {
  const layout = join(folder, 'layout')
  expect((await daemon.svc('export', 'oci', 'acme/onnx:raw', layout)).code).toBe(0)
  expect((await daemon.svc('import', 'oci', layout, '--as', 'back/onnx')).stderr).toContain('hint: --opaque')
  expect((await daemon.svc('import', 'oci', layout, '--as', 'back/onnx', '--opaque')).code).toBe(0)
  const digest = async (ref: string) => (await daemon.svc('resolve', ref, '-q')).stdout
  expect(await digest('back/onnx:raw')).toBe(await digest('acme/onnx:raw'))
})

it('a newer commit upgrades it, with the same choice', async () => {
  hub.commit({
    id: 'acme/whisper',
    files: listed({ ...WHISPER, 'ggml-tiny.bin': Buffer.concat([text('lmgg'), Buffer.alloc(60_000, 9)]) })
  })
  expect((await daemon.svc('outdated', '-q')).stdout).toContain('acme/whisper:raw')
  expect((await daemon.svc('upgrade', 'acme/whisper:raw')).code).toBe(0)
  const path = (await daemon.svc('path', 'acme/whisper')).stdout.trim()
  expect(path).toMatch(/\/ggml-tiny\.bin$/)
  expect(readFileSync(path).length).toBe(60_004)
})

it('its bytes are evicted, and fetched again', async () => {
  expect((await daemon.svc('import', 'hf', 'acme/far', '--opaque')).code).toBe(0)
  expect(await daemon.svc('evict', 'acme/far:raw')).toMatchObject({ code: 0 })
  expect(await daemon.svc('pull', 'acme/far:raw')).toMatchObject({ code: 0 })
  const path = (await daemon.svc('path', 'acme/far')).stdout.trim()
  expect(readFileSync(path).equals(Buffer.alloc(80_000, 7))).toBe(true)
})
