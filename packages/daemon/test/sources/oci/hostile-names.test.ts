// Artifacts of strangers, as layouts on disk, whose files have names that no import takes.
import { createHash } from 'node:crypto'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Job } from '@svc/client/protocol'
import { expect, test } from 'vitest'
import { sharedByFile, temporaryFolder } from '../../support/daemon.ts'
import { Node, weights } from '../../swarm/nodes.ts'

const RAW = 'application/vnd.cncf.model.weight.v1.raw'
const node = sharedByFile((cleanUp) => Node.start({ swarm: { enabled: false } }, cleanUp))
const FILE = weights(4_000)

interface Layer {
  readonly name: string
  readonly bytes?: Buffer
  readonly mediaType?: string
}

function layout(layers: readonly Layer[], config = Buffer.from('{}')): string {
  const folder = temporaryFolder()
  mkdirSync(join(folder, 'blobs/sha256'), { recursive: true })
  const put = (bytes: Buffer): { readonly digest: string; readonly size: number } => {
    const hex = createHash('sha256').update(bytes).digest('hex')
    writeFileSync(join(folder, 'blobs/sha256', hex), bytes)
    return { digest: `sha256:${hex}`, size: bytes.length }
  }
  const manifest = {
    schemaVersion: 2,
    mediaType: 'application/vnd.oci.image.manifest.v1+json',
    artifactType: 'application/vnd.cncf.model.manifest.v1+json',
    config: { mediaType: 'application/vnd.cncf.model.config.v1+json', ...put(config) },
    layers: layers.map(({ name, bytes = FILE, mediaType = RAW }) => ({
      mediaType,
      ...put(bytes),
      annotations: { 'org.cncf.model.filepath': name }
    }))
  }
  const described = { mediaType: manifest.mediaType, ...put(Buffer.from(JSON.stringify(manifest))) }
  writeFileSync(join(folder, 'oci-layout'), '{"imageLayoutVersion":"1.0.0"}')
  writeFileSync(join(folder, 'index.json'), JSON.stringify({ schemaVersion: 2, manifests: [described] }))
  return folder
}

const imported = (layers: readonly Layer[], as: string): Promise<Job> => importedFrom(layout(layers), as)

async function importedFrom(path: string, as: string): Promise<Job> {
  const { client } = await node()
  return client.waitJob(await client.importOci({ path, as }), { intervalMs: 10 })
}

test('an ordinary file name is accepted', async () => {
  expect(await imported([{ name: 'm-q8_0.gguf' }], 'me/good')).toMatchObject({ state: 'done' })
})

test.each<[string, readonly Layer[]]>([
  ['leads out', [{ name: '../m-q8_0.gguf' }]],
  ['leads out in the middle', [{ name: 'a/../../m-q8_0.gguf' }]],
  ['is absolute', [{ name: '/tmp/m-q8_0.gguf' }]],
  ['has a drive or backslashes', [{ name: '..\\m-q8_0.gguf' }]],
  ['holds a control character', [{ name: 'm\n-q8_0.gguf' }]],
  ['breaks a line where JSON does not', [{ name: 'm\u2028-q8_0.gguf' }]],
  ['shows another order of characters', [{ name: 'm-q8_0\u202efugg.gguf' }]],
  ['holds NUL', [{ name: 'm\0-q8_0.gguf' }]],
  ['has an empty part', [{ name: 'a//m-q8_0.gguf' }]],
  ['is longer than any file system takes', [{ name: `${'m'.repeat(5_000)}-q8_0.gguf` }]],
  ['is there twice', [{ name: 'm-q8_0.gguf' }, { name: 'm-q8_0.gguf', bytes: weights(5_000, 2) }]],
  ['is a file and a folder', [{ name: 'm-q8_0.gguf' }, { name: 'm-q8_0.gguf/config.json', bytes: Buffer.from('{}') }]]
])('an artifact is refused whose name %s', async (what, layers) => {
  const { client } = await node()
  const good = { name: 'other-q4_0.gguf', bytes: weights(6_000, 3) }
  expect(await imported([...layers, good], 'me/bad'), what).toMatchObject({
    state: 'failed',
    error: { code: 'E_NOT_IMPORTABLE' }
  })
  expect((await client.models()).namespaces.map(({ name }) => name)).not.toContain('bad')
})

test.each(['application/vnd.cncf.model.weight.v1.tar', 'application/vnd.cncf.model.weight.v1.tar+gzip'])(
  'a layer of type %s is not unpacked',
  async (mediaType) => {
    expect(await imported([{ name: 'm-q8_0.gguf', mediaType }], 'me/packed')).toMatchObject({
      state: 'failed',
      error: { code: 'E_NOT_IMPORTABLE' }
    })
  }
)

let seed = 9
test.each<[string, (file: string) => void]>([
  ['has other bytes', (file) => writeFileSync(file, '{"a":2}'.padEnd(40))],
  ['has another size', (file) => writeFileSync(file, '{}')],
  ['is not there', (file) => rmSync(file)]
])('an artifact is refused whose configuration %s, and nothing of it is kept', async (_, spoil) => {
  const own = await node()
  const files = [{ name: 'm-q8_0.gguf', bytes: weights(7_000, seed++) }]
  const config = Buffer.from('{"a":1}'.padEnd(40))
  const folder = layout(files, config)
  const file = join(folder, 'blobs/sha256', createHash('sha256').update(config).digest('hex'))
  spoil(file)
  const before = own.blobs()
  expect((await importedFrom(folder, 'me/spoilt')).state).toBe('failed')
  expect(own.blobs()).toEqual(before)
  writeFileSync(file, config)
  expect((await importedFrom(folder, 'me/sound')).state).toBe('done')
})

test('titles in a foreign artifact become companions by the same rules', async () => {
  const { client } = await node()
  const small = { 'generation_config.json': '{"temperature":0.6}', 'docs/README.md': '# x', NOTICE: '' }
  const layers = Object.entries(small).map(([name, text]) => ({
    name,
    bytes: Buffer.from(text),
    mediaType: 'application/vnd.cncf.model.doc.v1.raw'
  }))
  const weighty = [
    { name: 'm-q8_0.gguf', bytes: weights(8_000, 31) },
    { name: 'notes.bin', bytes: Buffer.alloc((1 << 20) + 1) }
  ]
  const job = await imported([...layers, ...weighty], 'me/titled')
  const { companions } = await client.open('svc:///me/titled:q8_0')
  expect(job.result).toMatchObject({ companions: companions!.digest, omitted: 1 })
  expect(companions!.files.map(({ path }) => path)).toEqual(Object.keys(small).sort())
  expect(companions!.omitted.filter(({ reason }) => reason !== 'artifact')).toEqual([
    { path: 'notes.bin', size: (1 << 20) + 1, reason: 'large' }
  ])
})

test('a quant of safetensors cannot be chosen before they are fetched, and the error says how to choose', async () => {
  const { client } = await node()
  const path = layout([{ name: 'model.safetensors' }])
  const job = await client.waitJob(await client.importOci({ path, as: 'me/chosen', quants: ['bf16'] }), {
    intervalMs: 10
  })
  expect(job).toMatchObject({ state: 'failed', error: { code: 'E_BAD_REQUEST' } })
  expect(job.error!.message).toContain('"files"')
})
