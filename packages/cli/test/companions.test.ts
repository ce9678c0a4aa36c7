// The companions of a model travel with it, and every file of the folder has a name on the command line.
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { startFakeHub } from '@svc/testkit/fake-hub'
import { makeGguf, makeSafetensors } from '@svc/testkit/models'
import { recordText } from '@svc/testkit/records'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { laterUndo, type TestDaemon, testDaemon } from './support.ts'

vi.setConfig({ testTimeout: 60_000 })
const undo = laterUndo()
afterAll(undo.all)

const REF = 'acme/embed:bf16'
const FILES: Record<string, string | Uint8Array> = {
  'model.safetensors': makeSafetensors(),
  'config.json': '{"model_type":"bert"}',
  'tokenizer.json': '{"version":"1.0"}',
  'modules.json': '[{"path":""},{"path":"1_Pooling"}]',
  '1_Pooling/config.json': '{"pooling_mode_cls_token":true}',
  'README.md': '# embed\n',
  LICENSE: 'do what you like\n'
}
let from: TestDaemon
let source: string

async function ok(daemon: TestDaemon, ...args: string[]): Promise<string> {
  const ran = await daemon.svc(...args)
  expect(ran.code, `svc ${args.join(' ')}: ${ran.stderr}`).toBe(0)
  return ran.stdout
}
const folderOf = (path: string): Record<string, string> =>
  Object.fromEntries(
    readdirSync(path, { recursive: true })
      .map(String)
      .filter((name) => name !== '.svc-view.json' && statSync(join(path, name)).isFile())
      .sort()
      .map((name) => [name, readFileSync(join(path, name)).toString('base64')])
  )

beforeAll(async () => {
  from = await testDaemon({}, undo.later)
  source = join(from.folder, 'embed')
  for (const [name, content] of Object.entries(FILES)) {
    mkdirSync(dirname(join(source, name)), { recursive: true })
    writeFileSync(join(source, name), content)
  }
  await ok(from, 'import', 'local', source, '--as', 'acme/embed')
})

it('svc cat prints every file by name: from the manifest, from a tar, or a companion', async () => {
  for (const [name, content] of Object.entries(FILES))
    expect(await ok(from, 'cat', `${REF}#${name}`)).toBe(Buffer.from(content).toString('latin1'))
  for (const name of ['tokenizer.json', '1_Pooling/config.json'])
    expect(await ok(from, 'cat', `${REF}#${name}`, '--range', '-4')).toBe(String(FILES[name]).slice(-4))
  const absent = await from.svc('cat', `${REF}#absent.json`)
  expect([absent.code, absent.stdout]).toEqual([3, ''])
  expect(absent.stderr).toContain('1_Pooling/config.json')
})

it("svc show lists companions and what was left out; svc path finds them after the model's files; svc du counts them", async () => {
  const large = join(from.folder, 'large')
  mkdirSync(large)
  writeFileSync(join(large, 'model.safetensors'), makeSafetensors({ seed: 7 }))
  writeFileSync(join(large, 'notes.txt'), Buffer.alloc(500_000, 'n'))
  writeFileSync(join(large, 'dump.bin'), Buffer.alloc(1_048_577))
  await ok(from, 'import', 'local', large, '--as', 'acme/large')
  const shown = await ok(from, 'show', 'acme/large:bf16')
  expect(shown).toContain('notes.txt')
  expect(shown).toMatch(/left out .*\n.*dump\.bin/)
  expect((await ok(from, 'path', `${REF}#config.json`)).trim()).toMatch(/[^g]\/config\.json$/)
  const { models } = JSON.parse(await ok(from, 'du', 'acme/large', '--json'))
  expect(models[0].aloneBytes).toBeGreaterThan(500_000)
})

it('files that no loader reads are exported only on request and listed by show and why; secrets never leave', async () => {
  const mixed = join(from.folder, 'mixed')
  const texts = { 'README.md': '# mixed\n', 'notes.txt': 'for me\n', id_rsa: 'a key\n' }
  mkdirSync(mixed)
  writeFileSync(join(mixed, 'model.safetensors'), makeSafetensors({ seed: 9 }))
  for (const [name, text] of Object.entries(texts)) writeFileSync(join(mixed, name), text)
  const taken = async (...options: string[]): Promise<string[]> => {
    await ok(from, 'import', 'local', mixed, '--as', 'acme/mixed', ...options)
    const layout = join(from.folder, `mixed${options.length}`)
    await ok(from, 'export', 'oci', 'acme/mixed:bf16', layout)
    const blobs = readdirSync(join(layout, 'blobs/sha256')).map((name) =>
      readFileSync(join(layout, 'blobs/sha256', name), 'latin1')
    )
    return Object.entries(texts)
      .filter(([name, text]) => blobs.some((blob) => blob === text || blob.includes(name)))
      .map(([name]) => name)
  }
  expect(await taken()).toEqual(['README.md'])
  expect(await ok(from, 'show', 'acme/mixed:bf16')).toMatch(/notes\.txt +not shared/)
  expect(await ok(from, 'why', 'acme/mixed:bf16')).toContain('notes.txt')
  expect((await ok(from, 'path', 'acme/mixed:bf16#notes.txt')).trim()).toMatch(/notes\.txt$/)
  expect(await taken('--companions', 'all')).toEqual(['README.md', 'notes.txt'])
})

it('an OCI layout contains companions: another daemon gets the same folder', async () => {
  const layout = join(from.folder, 'layout')
  await ok(from, 'export', 'oci', REF, layout)
  const to = await testDaemon({}, undo.later)
  await ok(to, 'import', 'oci', layout, '--as', REF.split(':')[0]!)
  const manifest = async (daemon: TestDaemon) => JSON.parse(await ok(daemon, 'show', REF, '--json'))
  const [here, there] = [await manifest(from), await manifest(to)]
  expect(there.manifestDigest).toBe(here.manifestDigest)
  expect(there.companions.digest).toBe(here.companions.digest)
  expect(folderOf((await ok(to, 'path', REF, '--dir')).trim())).toEqual(folderOf(source))
})

it('svc companions fetches only the companions of a model that was imported without them', async () => {
  const hub = await startFakeHub()
  undo.later(() => hub.close())
  const ids = { q4_0: makeGguf({ seed: 1 }), q8_0: makeGguf({ seed: 2 }) }
  const weights = Object.entries(ids).map(([quant, content]) => ({ path: `m-${quant}.gguf`, content }))
  hub.commit({ id: 'Acme/Old', files: [...weights, { path: 'params', content: Buffer.from('{}') }] })
  const config = { swarm: { enabled: false }, hub: { endpoint: hub.endpoint } }
  const daemon = await testDaemon({ fileConfig: config }, undo.later)
  await ok(daemon, 'import', 'hf', 'Acme/Old', '--all')
  // as after an import without companions
  for (const name of readdirSync(join(daemon.root, 'state/artifacts'))) {
    const path = join(daemon.root, 'state/artifacts', name)
    const { companions, version, readers, checksum, source, ...rest } = JSON.parse(readFileSync(path, 'utf8'))
    expect(Object.keys(companions)).toEqual(['acme/old'])
    const { kind, repo, revision } = source
    writeFileSync(path, recordText({ ...rest, source: { kind, repo, revision } }, 4))
  }
  const typed = 'svc companions acme/old:q8_0'
  expect(await ok(daemon, 'show', 'acme/old:q8_0')).toContain(typed)
  expect((await daemon.svc('path', 'acme/old:q8_0')).stderr).toContain(typed)
  expect(await ok(daemon, 'companions', 'acme/old')).toBe('acme/old:q4_0\nacme/old:q8_0\n')
  expect(await ok(daemon, 'cat', 'acme/old:q8_0#params')).toBe('{}')
  expect((await daemon.svc('path', 'acme/old:q8_0')).stderr).not.toContain('svc companions')
  const local = await daemon.svc('import', 'local', source, '--as', 'own/embed')
  expect(local.code).toBe(0)
  expect(await daemon.svc('companions', 'own/embed')).toMatchObject({ code: 6, stdout: '' })
})
