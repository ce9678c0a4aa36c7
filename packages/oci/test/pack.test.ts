// What is packed: the same bytes for the same model, in the order and with the types that consumers of ModelPack look for.
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { digestFromHex } from '@svc/ref'
import Schema from 'typebox/schema'
import { describe, expect, it } from 'vitest'
import { parseOciManifest } from '../src/document.ts'
import { packImage } from '../src/image.ts'
import { type PackInput, packArtifact } from '../src/pack.ts'
import { modelOf } from '../src/unpack.ts'

const digest = (text: string) => digestFromHex(createHash('sha256').update(text).digest('hex'))
const file = (name: string, kind: string, role?: string) => ({
  name,
  kind,
  role,
  sizeBytes: name.length,
  digest: digest(name),
  path: `/blobs/${name}`
})
const INPUT: PackInput = {
  files: [
    file('config.json', 'config'),
    file('model-00001-of-00002.safetensors', 'weights.safetensors'),
    file('model-00002-of-00002.safetensors', 'weights.safetensors'),
    file('imatrix.dat', 'weights.aux', 'imatrix'),
    file('mmproj-f16.gguf', 'weights.aux', 'vision-projector'),
    file('tokenizer.json', 'tokenizer'),
    file('lora/adapter_model.safetensors', 'adapter'),
    file('modeling_x.py', 'code', 'model'),
    file('LICENSE', 'licence')
  ],
  annotations: {
    'svc.hf.repo': 'Org/Name',
    'svc.hf.revision': 'a'.repeat(40),
    'svc.license': 'MIT',
    'svc.license.file.LICENSE': 'text of a licence'
  },
  manifestDigest: digest('manifest'),
  ref: 'org/name:bf16',
  model: { family: 'llama', weightsFormat: 'safetensors', quantization: 'bf16' }
}
const json = (bytes: Uint8Array) => JSON.parse(Buffer.from(bytes).toString('utf8'))

describe('packArtifact', () => {
  const packed = packArtifact(INPUT)
  const manifest = parseOciManifest(packed.manifest.bytes)

  it('puts the weights first and types every layer', () => {
    expect(
      manifest.layers.map(({ mediaType, annotations }) => [
        annotations?.['org.cncf.model.filepath'],
        mediaType.slice('application/vnd.cncf.model.'.length)
      ])
    ).toEqual([
      ['model-00001-of-00002.safetensors', 'weight.v1.raw'],
      ['model-00002-of-00002.safetensors', 'weight.v1.raw'],
      ['mmproj-f16.gguf', 'weight.v1.raw'],
      ['lora/adapter_model.safetensors', 'weight.v1.raw'],
      ['config.json', 'weight.config.v1.raw'],
      ['imatrix.dat', 'weight.config.v1.raw'],
      ['tokenizer.json', 'weight.config.v1.raw'],
      ['modeling_x.py', 'code.v1.raw'],
      ['LICENSE', 'doc.v1.raw']
    ])
    for (const { annotations = {} } of manifest.layers) {
      expect(annotations['org.opencontainers.image.title']).toBe(annotations['org.cncf.model.filepath'])
    }
  })

  it('gives the same bytes every time, and layers the digests of the files', () => {
    expect(packArtifact(structuredClone(INPUT)).manifest.digest).toBe(packed.manifest.digest)
    expect(manifest.layers[0]!.digest).toBe(INPUT.files[1]!.digest)
  })

  it("has a configuration that is valid by ModelPack's schema", () => {
    const schema = readFileSync(new URL('fixtures/modelpack-config-schema.json', import.meta.url), 'utf8')
    const check = Schema.Compile(JSON.parse(schema))
    expect(check.Check(json(packed.config.bytes))).toBe(true)
    const { modelfs } = json(packed.config.bytes)
    expect(modelfs.diffIds).toEqual(manifest.layers.map((layer) => layer.digest))
    // the schema refuses what it should: the check above can fail
    expect(check.Check({ ...json(packed.config.bytes), createdBy: 'us' })).toBe(false)
    const bare = packArtifact({ ...INPUT, ref: undefined, model: undefined, annotations: {} })
    expect(check.Check(json(bare.config.bytes))).toBe(true)
  })

  it('is read back with the files and origin that were packed', () => {
    const model = modelOf(manifest)
    expect(model).toMatchObject({ pin: INPUT.manifestDigest, ref: 'org/name:bf16' })
    expect(model.annotations).toEqual({ 'svc.hf.repo': 'Org/Name', 'svc.hf.revision': 'a'.repeat(40) })
    expect(model.files.map(({ name }) => name)).toContain('LICENSE')
  })

  it('names an origin only if readers would see it as an artifact of that origin', () => {
    const said = (annotations: Record<string, string>) =>
      modelOf({ ...manifest, annotations: { ...manifest.annotations, ...annotations } })
    expect(said({ 'svc.hf.repo': '../../Org', 'svc.hf.revision': '\u001b[2J' }).annotations).toEqual({})
    expect(said({ 'svc.manifest': 'sha256:x' })).toMatchObject({ pin: undefined, annotations: {} })
  })

  it('refuses a model without files', () => {
    expect(() => packArtifact({ ...INPUT, files: [] })).toThrow(expect.objectContaining({ code: 'E_UNSUPPORTED' }))
  })

  it.each(['../x', '/etc/x', 'a/../../x', 'a//x', './x', 'a\\x', 'a\nb', 'a\0', '', '..', '.', 'a/..'])(
    'refuses the name %j, which would lead a client out of its folder',
    async (name) => {
      const input = { ...INPUT, files: [...INPUT.files, file(name, 'licence')] }
      expect(() => packArtifact(input)).toThrow(expect.objectContaining({ code: 'E_UNSUPPORTED' }))
      await expect(packImage(input)).rejects.toMatchObject({ code: 'E_UNSUPPORTED' })
    }
  )

  it('packs no file that is not in the list, whatever the annotations say', () => {
    const annotations = { ...INPUT.annotations, 'svc.license.file.../../evil.py': 'x' }
    const { layers } = packArtifact({ ...INPUT, annotations })
    expect(layers.map(({ descriptor }) => descriptor)).toEqual(packed.layers.map(({ descriptor }) => descriptor))
  })
})

describe('modelOf', () => {
  const layer = (mediaType: string, annotations?: Record<string, string>) => ({
    mediaType,
    digest: digest(mediaType),
    size: 1,
    ...(annotations && { annotations })
  })
  const of = (config: string, ...layers: ReturnType<typeof layer>[]) =>
    modelOf({ config: layer(config), layers, annotations: {} })
  const title = { 'org.opencontainers.image.title': 'a.gguf' }

  it('accepts raw layers of any tool, and leaves out those without a name', () => {
    const taken = of(
      'application/vnd.unknown.config.v1+json',
      layer('x/y', title),
      layer('application/vnd.oci.empty.v1+json')
    )
    expect(taken.files.map(({ name }) => name)).toEqual(['a.gguf'])
  })

  it.each([
    ['layers that are tars', 'c', 'application/vnd.cncf.model.weight.v1.tar'],
    ['compressed layers', 'c', 'application/vnd.cncf.model.weight.v1.tar+zstd'],
    ['gzip layers', 'c', 'application/vnd.oci.image.layer.v1.tar+gzip'],
    ['ordinary images', 'application/vnd.oci.image.config.v1+json', 'application/vnd.oci.image.layer.v1.tar']
  ])('refuses %s', (_, config, type) => {
    expect(() => of(config, layer(type, title))).toThrow(expect.objectContaining({ code: 'E_UNSUPPORTED' }))
  })

  it('refuses folders that oras packed, and artifacts without files', () => {
    const folder = layer('x/y', { ...title, 'io.deis.oras.content.unpack': 'true' })
    for (const layers of [[folder], [layer('x/y')], []]) {
      expect(() => of('c', ...layers)).toThrow(expect.objectContaining({ code: 'E_UNSUPPORTED' }))
    }
  })
})
