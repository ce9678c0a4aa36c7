// A model that was signed here verifies here, and each change of the folder is named.
import { generateKeyPairSync, hash } from 'node:crypto'
import { cpSync, mkdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { signModel } from '@svc/signature'
import { makeProjectorGguf } from '@svc/testkit/llama-gguf'
import { makeGguf, makeSafetensors } from '@svc/testkit/models'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { laterUndo, ok as succeed, type TestDaemon, testDaemon } from './support.ts'

vi.setConfig({ testTimeout: 60_000 })
const undo = laterUndo()
afterAll(undo.all)

const FILES: Record<string, string | Uint8Array> = {
  'model.safetensors': makeSafetensors(),
  'config.json': '{"model_type":"bert"}',
  'tokenizer.json': '{"version":"1.0"}',
  '1_Pooling/config.json': '{"pooling_mode_cls_token":true}',
  'README.md': '# signed\n'
}
const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-384' })
const other = generateKeyPairSync('ec', { namedCurve: 'P-384' })
let daemon: TestDaemon
let key: readonly string[]

const at = (name: string): string => join(daemon.folder, name)

const ok = (...args: string[]): Promise<string> => succeed(daemon, ...args)

function write(folder: string, files: Readonly<Record<string, string | Uint8Array>>): string {
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(at(folder), name)), { recursive: true })
    writeFileSync(join(at(folder), name), content)
  }
  return at(folder)
}

/** The signed folder with changes, imported under a name of its own. */
async function importChanged(name: string, files: Readonly<Record<string, string | Uint8Array>>): Promise<string> {
  cpSync(at('signed'), at(name), { recursive: true })
  await ok('import', 'local', write(name, files), '--as', `acme/${name}`)
  return `acme/${name}`
}

beforeAll(async () => {
  daemon = await testDaemon({}, undo.later)
  writeFileSync(at('key.pem'), privateKey.export({ type: 'pkcs8', format: 'pem' }))
  writeFileSync(at('key.pub'), publicKey.export({ type: 'spki', format: 'pem' }))
  writeFileSync(at('other.pub'), other.publicKey.export({ type: 'spki', format: 'pem' }))
  key = ['--key', at('key.pub')]
  await ok('import', 'local', write('plain', FILES), '--as', 'acme/plain')
  mkdirSync(at('signed'))
  cpSync(at('plain'), at('signed'), { recursive: true })
  await ok('sign', 'acme/plain', '--key', at('key.pem'), '--output', join(at('signed'), 'model.sig'))
  await ok('import', 'local', at('signed'), '--as', 'acme/signed')
})

it('a signed model verifies, with every file of the folder covered', async () => {
  const found = JSON.parse(await ok('verify-signature', 'acme/signed', ...key, '--json'))
  expect(found).toMatchObject({
    valid: true,
    covered: Object.keys(FILES).sort(),
    ignored: ['model.sig'],
    uncovered: [],
    missing: [],
    changed: []
  })
  expect(await ok('verify-signature', 'acme/plain', ...key, '--signature', join(at('signed'), 'model.sig'))).toContain(
    'covered     5 files'
  )
})

it('a model without a signature, another key and no key at all are refused', async () => {
  expect((await daemon.svc('verify-signature', 'acme/plain', ...key)).code).toBe(3)
  expect((await daemon.svc('verify-signature', 'acme/signed', '--key', at('other.pub'))).code).toBe(5)
  expect((await daemon.svc('verify-signature', 'acme/signed')).code).toBe(2)
  expect((await daemon.svc('verify-signature', 'acme/signed', '--root', at('key.pub'))).code).toBe(2)
  expect((await daemon.svc('verify-signature', 'acme/signed', '--key', at('absent'))).code).toBe(2)
})

it('a flipped byte is detected and its file named, in the weights and beside them', async () => {
  const weights = await daemon.svc(
    'verify-signature',
    await importChanged('w', { 'model.safetensors': makeSafetensors({ seed: 7 }) }),
    ...key
  )
  expect([weights.code, weights.stderr]).toEqual([5, expect.stringContaining('changed: model.safetensors')])
  const beside = await daemon.svc(
    'verify-signature',
    await importChanged('p', { '1_Pooling/config.json': '{"pooling_mode_cls_token":null}' }),
    ...key
  )
  expect([beside.code, beside.stderr]).toEqual([5, expect.stringContaining('changed: 1_Pooling/config.json')])
})

it('missing and added files are named; added ones can be allowed', async () => {
  write('short', { 'model.safetensors': FILES['model.safetensors']!, 'config.json': FILES['config.json']! })
  await ok('import', 'local', at('short'), '--as', 'acme/short')
  const missing = await daemon.svc(
    'verify-signature',
    'acme/short',
    ...key,
    '--signature',
    join(at('signed'), 'model.sig')
  )
  expect([missing.code, missing.stderr]).toEqual([
    5,
    expect.stringContaining('missing: 1_Pooling/config.json, README.md, tokenizer.json')
  ])
  const added = await importChanged('added', { 'generation_config.json': '{}' })
  const ran = await daemon.svc('verify-signature', added, ...key)
  expect([ran.code, ran.stderr]).toEqual([5, expect.stringContaining('not signed: generation_config.json')])
  await ok('verify-signature', added, ...key, '--allow-uncovered')
})

it('files whose headers gave them their names verify under those, all parts of a set or none', async () => {
  const part = (at: number): string => `tiny-0000${at}-of-00002.gguf`
  const split = (at: number): Uint8Array =>
    makeGguf({ seed: at, metadata: { 'split.no': { u16: at - 1 }, 'split.count': { u16: 2 } } })
  const kinds: Record<string, Record<string, Uint8Array>> = {
    one: { 'Tiny.gguf': makeGguf({ seed: 1 }), 'Other.Q4_0.gguf': makeGguf({ seed: 2 }) },
    vision: { 'Tiny.Q8_0.gguf': makeGguf({ seed: 1 }), 'Eyes.gguf': makeProjectorGguf() },
    set: { [part(1)]: split(1), [part(2)]: split(2) }
  }
  for (const [name, files] of Object.entries(kinds)) {
    const listed = Object.entries(files).map(([path, bytes]) => ({ path, sha256: hash('sha256', bytes) }))
    const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
    const sig = signModel({ name: 'tiny', files: listed, ignored: [] }, { key: pem })
    const verify = async (as: string, here: Record<string, Uint8Array>) => {
      await ok('import', 'local', write(as, { ...here, 'model.sig': sig }), '--quant', 'q8_0', '--as', `acme/${as}`)
      return daemon.svc('verify-signature', `acme/${as}:q8_0`, ...key, '--json')
    }
    const good = await verify(`told-${name}`, files)
    expect([name, good.code, good.stderr]).toEqual([name, 0, ''])
    const [first] = Object.keys(files)
    const changed = await verify(`changed-${name}`, {
      ...files,
      [first!]: name === 'set' ? split(3) : makeGguf({ seed: 4 })
    })
    expect([changed.code, changed.stderr]).toEqual([5, expect.stringContaining(`changed: ${first}`)])
  }
})

it('a quant of a signed repository verifies under its imported name, without the files that were not chosen', async () => {
  const files: Record<string, Uint8Array | string> = {
    'Tiny.Q8_0.gguf': makeGguf({ seed: 1 }),
    'Tiny.Q4_0.gguf': makeGguf({ seed: 2 }),
    'demo.mp4': Buffer.alloc((1 << 20) + 1)
  }
  const listed = Object.entries(files).map(([path, bytes]) => ({ path, sha256: hash('sha256', bytes) }))
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
  const sig = signModel({ name: 'tiny', files: listed, ignored: [] }, { key: pem })
  const one = async (name: string, more: Record<string, Uint8Array>) => {
    await ok(
      'import',
      'local',
      write(name, { ...files, ...more, 'model.sig': sig }),
      '--quant',
      'q8_0',
      '--as',
      `acme/${name}`
    )
    return daemon.svc('verify-signature', `acme/${name}`, ...key, '--json')
  }
  const good = await one('quant', {})
  expect([good.code, JSON.parse(good.stdout)]).toMatchObject([
    0,
    { covered: ['Tiny.Q8_0.gguf'], notChosen: ['Tiny.Q4_0.gguf', 'demo.mp4'], uncovered: [], missing: [] }
  ])
  const changed = await one('other-quant', { 'Tiny.Q8_0.gguf': makeGguf({ seed: 4 }) })
  expect([changed.code, changed.stderr]).toEqual([5, expect.stringContaining('Tiny.Q8_0.gguf')])
})

it('the report of a login has the date of the trust root', async () => {
  const signature = fileURLToPath(new URL('../../signature/test/reference/v1.1.0-sigstore.sig', import.meta.url))
  const seeds = createRequire(new URL('../../signature/package.json', import.meta.url))('@sigstore/tuf/seeds.json')
  const [{ targets }] = Object.values(seeds) as [{ targets: Record<string, string> }]
  writeFileSync(at('root.json'), Buffer.from(targets['trusted_root.json']!, 'base64'))
  const changed = new Date('2026-02-03T12:00:00Z')
  utimesSync(at('root.json'), changed, changed)
  const by = ['--issuer', 'https://sigstore.verify.ibm.com/oauth2', '--subject', 'stefanb@us.ibm.com']
  const ran = await daemon.svc(
    'verify-signature',
    'acme/plain',
    '--root',
    at('root.json'),
    ...by,
    '--signature',
    signature
  )
  expect(ran.stdout).toContain('signed by stefanb@us.ibm.com')
  expect(ran.stdout).toContain(`trust root  ${at('root.json')} of 2026-02-03`)
  // the signature is of other files
  expect([ran.code, ran.stderr]).toEqual([5, expect.stringContaining('missing: signme-1, signme-2')])
})

it("a signature contains neither the owner's own files nor their names", async () => {
  await ok('import', 'local', write('noted', { ...FILES, 'layoffs.csv': 'names' }), '--as', 'acme/noted')
  const output = at('noted.sig')
  const ran = await daemon.svc('sign', 'acme/noted', '--key', at('key.pem'), '--output', output)
  expect([ran.code, ran.stderr]).toEqual([0, expect.stringContaining('layoffs.csv')])
  const { dsseEnvelope } = JSON.parse(readFileSync(output, 'utf8')) as { dsseEnvelope: { payload: string } }
  expect(Buffer.from(dsseEnvelope.payload, 'base64').toString()).not.toContain('layoffs')
  const here = await daemon.svc('verify-signature', 'acme/noted', ...key, '--signature', output)
  expect([here.code, here.stderr]).toEqual([5, expect.stringContaining('not signed: layoffs.csv')])
  await ok('verify-signature', 'acme/noted', ...key, '--signature', output, '--allow-uncovered')
})

it('a signature never overwrites a file', async () => {
  const again = await daemon.svc(
    'sign',
    'acme/plain',
    '--key',
    at('key.pem'),
    '--output',
    join(at('signed'), 'model.sig')
  )
  expect([again.code, again.stderr]).toEqual([2, expect.stringContaining('--output')])
  expect((await daemon.svc('sign', 'acme/plain', '--key', at('key.pub'), '--output', at('x.sig'))).code).toBe(2)
})

it('an OCI artifact obeys the trust rules of the configuration', async () => {
  const trust = [{ names: ['acme/*'], mode: 'require', keys: [at('key.pub')] }]
  const strict = await testDaemon({ fileConfig: { swarm: { enabled: false }, trust } })
  const bundleOf = async (ref: string): Promise<string> => {
    const bundle = at(`${ref.replace('/', '-')}.tar`)
    await ok('export', 'oci', ref, bundle)
    return bundle
  }
  const signed = await strict.svc('import', 'oci', await bundleOf('acme/signed'), '--as', 'acme/signed')
  expect([signed.code, signed.stderr]).toEqual([0, expect.anything()])
  const changed = await importChanged('oci', { 'README.md': '# other\n' })
  const refused = await strict.svc('import', 'oci', await bundleOf(changed), '--as', 'acme/changed')
  expect([refused.code === 0, refused.stderr]).toEqual([false, expect.stringContaining('README.md')])
  expect((await strict.svc('ls')).stdout).not.toContain('acme/changed')
})
