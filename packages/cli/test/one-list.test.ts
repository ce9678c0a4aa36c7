// What is checked, shown, given and signed is one list of files (spec doc.23): for a model with a file of every kind, all ways give the same.
import { generateKeyPairSync, hash } from 'node:crypto'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { signModel } from '@svc/signature'
import { startFakeHub } from '@svc/testkit/fake-hub'
import { makeSafetensors } from '@svc/testkit/models'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { BUILTIN_NETWORKS } from '../../daemon/src/app/networks.ts'
import { mergeConfig } from '../../daemon/src/config/config.ts'
import { storeAltered } from '../../daemon/test/support/altered-manifest.ts'
import { type TestDaemon, temporaryFolder, testDaemon } from '../../daemon/test/support/daemon.ts'
import { laterUndo, svc } from './support.ts'

vi.setConfig({ testTimeout: 60_000 })
const undo = laterUndo()
afterAll(undo.all)

const REPO = 'Acme/Whole'
const REF = 'acme/whole:bf16'
/** An entry of each kind, members of both tars, licences that are companions as well, companions, and names that only look alike. */
const FILES: Readonly<Record<string, string | Uint8Array>> = {
  'model.safetensors': makeSafetensors(),
  'config.json': '{"model_type":"bert"}',
  'tokenizer.json': '{"version":"1.0"}',
  'sub/vocab.json': '{}',
  'chat_template.jinja': '{{ messages }}',
  'modeling_tiny.py': 'pass\n',
  'lora/adapter_model.safetensors': makeSafetensors({ seed: 9 }),
  'lora/adapter_config.json': '{}',
  LICENSE: 'do what you like, but say so\n',
  'vae/LICENSE': 'the same\n',
  'NOTICE.txt': 'thanks\n',
  'README.md': '# whole\n',
  'readme.md': '# another\n',
  'generation_config.json': '{}',
  '1_Pooling/config.json': '{}'
}
/** What cannot be in any folder, though a source has it. */
const UNUSABLE = { HEAD: 'ref: refs/heads/main\n' }

const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const keyText = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
const digestOf = (bytes: string | Uint8Array): string => hash('sha256', bytes)
const SIGNATURE = signModel(
  {
    name: 'whole',
    files: Object.entries(FILES).map(([path, bytes]) => ({ path, sha256: digestOf(bytes) })),
    ignored: []
  },
  { key: keyText }
)
const ALL = { ...FILES, 'model.sig': SIGNATURE }
type Listed = Readonly<Record<string, string>>
const sorted = (files: Iterable<readonly [string, string]>): Listed =>
  Object.fromEntries([...files].sort(([a], [b]) => (a < b ? -1 : 1)))
const EXPECTED = sorted(Object.entries(ALL).map(([name, bytes]) => [name, digestOf(bytes)]))

let daemon: TestDaemon
const at = (name: string): string => join(daemon.folder, name)
const run = (...args: string[]) => svc(args, { socketPath: daemon.socketPath, cwd: daemon.folder })
async function ok(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await run(...args)
  expect([code, code === 0 ? '' : stderr]).toEqual([0, ''])
  return stdout.trimEnd()
}
const address = (door: string): string => JSON.parse(readFileSync(at('runtime.json'), 'utf8'))[`${door}MirrorAddress`]
const ask = async (url: string): Promise<Buffer> => Buffer.from(await (await fetch(url)).arrayBuffer())

beforeAll(async () => {
  const hub = await startFakeHub()
  undo.later(() => hub.close())
  const files = Object.entries({ ...ALL, ...UNUSABLE }).map(([path, content]) => ({
    path,
    content: Buffer.from(content),
    ...(path.endsWith('.safetensors') && { lfs: true })
  }))
  hub.commit({ id: REPO, files })
  const folder = temporaryFolder(undo.later)
  writeFileSync(join(folder, 'key.pem'), keyText)
  writeFileSync(join(folder, 'key.pub'), publicKey.export({ type: 'spki', format: 'pem' }))
  const any = '127.0.0.1:0'
  const config = mergeConfig(
    {
      swarm: { enabled: false },
      hub: { endpoint: hub.endpoint },
      mirror: { hub_addr: any, oci_addr: any, s3_addr: any },
      // all doors check the signature against the list
      trust: [{ names: ['Acme/*'], mode: 'require', keys: [join(folder, 'key.pub')] }]
    },
    { root: join(folder, 'root') },
    {}
  )
  daemon = await testDaemon({ folder, config, networks: { hub: BUILTIN_NETWORKS.hub! } }, undo.later)
  await ok('import', 'hf', REPO, '--as', 'acme/whole')
}, 60_000)

async function ofView(layout: 'files' | 'hf'): Promise<Listed> {
  const { body } = await daemon.post('/v1/views', { ref: `svc:///${REF}`, layout })
  const files = body.files as readonly { readonly name: string; readonly path: string }[]
  const onDisk = readdirSync(body.folder, { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory() && entry.name !== '.svc-view.json')
    .map((entry) => join(entry.parentPath, entry.name).slice(body.folder.length + 1))
  expect(onDisk.sort()).toEqual(files.map(({ name }) => name).sort())
  return sorted(files.map(({ name, path }) => [name, digestOf(readFileSync(path))]))
}

interface Layer {
  readonly digest: string
  readonly annotations: Readonly<Record<string, string>>
}
const ofLayers = (manifest: { readonly layers: readonly Layer[] }, digest = ({ digest }: Layer) => digest.slice(7)) =>
  sorted(manifest.layers.map((layer) => [layer.annotations['org.opencontainers.image.title']!, digest(layer)]))

async function exported(...options: string[]): Promise<Listed> {
  const path = at(`layout${options.length}`)
  await ok('export', 'oci', REF, path, ...options)
  const blob = (digest: string): Buffer => readFileSync(join(path, 'blobs/sha256', digest.slice(7)))
  const { manifests } = JSON.parse(readFileSync(join(path, 'index.json'), 'utf8'))
  const manifest = JSON.parse(blob(manifests[0].digest).toString())
  if (options.length === 0) return ofLayers(manifest)
  // a tar of one file each
  return ofLayers(manifest, ({ digest, annotations }) => {
    const tar = blob(digest)
    expect(tar.toString('latin1', 0, 100).replaceAll('\0', '')).toBe(
      `models/${annotations['org.opencontainers.image.title']}`
    )
    return digestOf(tar.subarray(512, 512 + Number.parseInt(tar.toString('latin1', 124, 135), 8)))
  })
}

async function signed(): Promise<Listed> {
  await ok('sign', REF, '--key', at('key.pem'), '--output', at('new.sig'))
  const { dsseEnvelope } = JSON.parse(readFileSync(at('new.sig'), 'utf8'))
  const { predicate } = JSON.parse(Buffer.from(dsseEnvelope.payload, 'base64').toString())
  const resources = predicate.resources as readonly { readonly name: string; readonly digest: string }[]
  return sorted([
    ...resources.map(({ name, digest }): [string, string] => [name, digest]),
    ['model.sig', digestOf(SIGNATURE)]
  ])
}

async function verified(): Promise<Listed> {
  const found = JSON.parse(await ok('verify-signature', REF, '--key', at('key.pub'), '--json'))
  expect(found).toMatchObject({ valid: true, uncovered: [], missing: [], changed: [], notChosen: [] })
  return sorted([...found.covered, ...found.ignored].map((name: string) => [name, EXPECTED[name] ?? 'unknown']))
}

const WAYS: Readonly<Record<string, () => Promise<Listed>>> = {
  'a view': () => ofView('files'),
  'a view as a hub cache': () => ofView('hf'),
  'svc verify-signature': verified,
  'svc sign': signed,
  'svc export oci': () => exported(),
  'svc export oci --image': () => exported('--image'),
  'the OCI mirror': async () =>
    ofLayers(JSON.parse((await ask(`http://${address('oci')}/v2/acme/whole/manifests/bf16`)).toString())),
  'the S3 mirror': async () => {
    const text = (await ask(`http://${address('s3')}/models?list-type=2&prefix=acme/whole/bf16/`)).toString()
    const rows = text.matchAll(/<Key>acme\/whole\/bf16\/([^<]*)<\/Key>.*?<ETag>&quot;([0-9a-f]{64})/gs)
    return sorted([...rows].map(([, name, digest]) => [name!, digest!]))
  },
  'the hub mirror': async () => {
    const base = `http://${address('hub')}`
    const { siblings } = JSON.parse((await ask(`${base}/api/models/${REPO}`)).toString())
    const files: [string, string][] = []
    for (const { rfilename } of siblings)
      files.push([rfilename, digestOf(await ask(`${base}/${REPO}/resolve/main/${rfilename}`))])
    return sorted(files)
  }
}

it.each(Object.entries(WAYS))('%s', async (_, list) => {
  expect(await list()).toEqual(EXPECTED)
})

it('svc publish: the artifact as it is, and the companions that are in the list', async () => {
  await ok('publish', REF, at('published'))
  const [model] = JSON.parse(readFileSync(at('published/index.json'), 'utf8')).models
  type Row = { readonly name: string; readonly digest: string }
  const beside = sorted(model.companions.files.map(({ name, digest }: Row) => [name, digest.slice(7)]))
  const own = new Map<string, string>(model.files.map(({ name, digest }: Row) => [name, digest.slice(7)]))
  const packed = ['modelconfig.json', 'tokenizer.tar', 'lora/adapter.tar']
  expect([...own.keys()]).toEqual(expect.arrayContaining(packed))
  for (const name of packed) own.delete(name)
  const inTars = ['tokenizer.json', 'sub/vocab.json', 'lora/adapter_model.safetensors', 'lora/adapter_config.json']
  const rest = Object.entries(EXPECTED).filter(([name]) => !inTars.includes(name))
  expect(sorted([...own, ...Object.entries(beside)])).toEqual(sorted(rest))
})

it.each(['modeling_evil.py', 'evil/chat_template.jinja'])(
  'the licence %j, which no signature covers, is not passed over',
  async (name) => {
    const ref = `other/evil-${name.length}`
    await storeAltered(daemon, `svc:///${REF}`, ref, { [`svc.license.file.${name}`]: 'import os\n' })
    const refused = await run('verify-signature', ref, '--key', at('key.pub'))
    expect([refused.code, refused.stderr]).toEqual([5, expect.stringContaining(`not signed: ${name}`)])
    const { body } = await daemon.post('/v1/views', { ref: `svc:///${ref}:bf16` })
    expect(readFileSync(join(body.folder, name), 'utf8')).toBe('import os\n')
  }
)
