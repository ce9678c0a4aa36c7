import { truncateSync } from 'node:fs'
import { join } from 'node:path'
import { readCache } from '@svc/view'
import { describe, expect, test } from 'vitest'
import { temporaryFolder } from './support/artifact.ts'
import { link, namesOf, put, sha256 } from './support/cache.ts'

const layer = (kind: string, content: string): object => ({
  mediaType: `application/vnd.ollama.image.${kind}`,
  digest: `sha256:${sha256(content)}`,
  size: content.length
})
const MANIFEST_TYPE = 'application/vnd.docker.distribution.manifest.v2+json'

function putOllama(
  root: string,
  at: string,
  layers: readonly (readonly [string, string])[],
  config: object = {}
): object {
  const text = JSON.stringify(config)
  for (const [, content] of [...layers, ['', text] as const]) put(root, `blobs/sha256-${sha256(content)}`, content)
  const manifest = {
    schemaVersion: 2,
    mediaType: MANIFEST_TYPE,
    config: {
      mediaType: 'application/vnd.docker.container.image.v1+json',
      digest: `sha256:${sha256(text)}`,
      size: text.length
    },
    layers: layers.map(([kind, content]) => layer(kind, content))
  }
  if (at !== '') put(root, at, manifest)
  return manifest
}

describe('Ollama', () => {
  test('names files by model, tag and quant, and knows their digests', async () => {
    const root = temporaryFolder()
    putOllama(
      root,
      'manifests/registry.ollama.ai/library/llama3.2/1b',
      [
        ['model', 'weights'],
        ['template', '{{ .Prompt }}'],
        ['license', 'MIT'],
        ['license', 'and more'],
        ['params', '{}'],
        ['system', 'be kind'],
        ['projector', 'eyes']
      ],
      { model_format: 'gguf', model_family: 'llama', file_type: 'Q8_0' }
    )
    putOllama(root, 'manifests/registry.ollama.ai/Somebody/Fine_Tune/latest', [
      ['model', 'other'],
      ['adapter', 'lora']
    ])
    putOllama(root, 'manifests/hf.co/Acme/Tiny-GGUF/Q4_K_M', [['model', 'third']], { file_type: 'Q4_K_M' })
    const { models, warnings } = await readCache({ tool: 'ollama', path: root })
    expect(warnings).toEqual([])
    const bySource = new Map(models.map((model) => [model.source, model]))
    expect([...bySource.keys()].sort()).toEqual([
      'Somebody/Fine_Tune:latest',
      'hf.co/Acme/Tiny-GGUF:Q4_K_M',
      'llama3.2:1b'
    ])
    const llama = bySource.get('llama3.2:1b')!
    expect(llama.suggested).toEqual({ ns: 'ollama', name: 'llama3.2-1b' })
    expect(namesOf(llama)).toEqual([
      'LICENSE',
      'LICENSE-2',
      'llama3.2-1b-q8_0.gguf',
      'mmproj-llama3.2-1b-q8_0.gguf',
      'params.json',
      'system.txt',
      'template'
    ])
    expect(llama.files[2]).toMatchObject({ expectedSha256: `sha256:${sha256('weights')}`, sizeBytes: 7 })
    expect(namesOf(bySource.get('Somebody/Fine_Tune:latest'))).toEqual(['adapter-fine_tune.gguf', 'fine_tune.gguf'])
    const fromHub = bySource.get('hf.co/Acme/Tiny-GGUF:Q4_K_M')!
    expect(fromHub).toMatchObject({ suggested: { ns: 'acme', name: 'tiny-gguf' }, hub: { repo: 'Acme/Tiny-GGUF' } })
    expect(namesOf(fromHub)).toEqual(['tiny-gguf-q4_k_m.gguf'])
  })

  test('reads the newer tree: links to manifests among the blobs, and a list for each runner', async () => {
    const root = temporaryFolder()
    const gguf = putOllama(root, '', [['model', 'weights']], { file_type: 'Q4_0' })
    const tensors = putOllama(root, '', [['tensor; name=a; dtype=BF16; shape=1', 'tensor']])
    const text = JSON.stringify(gguf)
    const list = JSON.stringify({
      schemaVersion: 2,
      mediaType: 'application/vnd.ollama.manifest.list.v2+json',
      manifests: [
        { ...tensors, runner: 'mlx', format: 'safetensors' },
        { mediaType: MANIFEST_TYPE, digest: `sha256:${sha256(text)}`, runner: 'llamacpp', format: 'gguf' }
      ]
    })
    for (const document of [text, list]) put(root, `blobs/sha256-${sha256(document)}`, document)
    const at = 'registry.ollama.ai/library/tiny'
    link(root, `manifests-v2/${at}/plain`, `../../../../blobs/sha256-${sha256(text)}`)
    link(root, `manifests-v2/${at}/list`, `../../../../blobs/sha256-${sha256(list)}`)
    putOllama(root, `manifests/${at}/plain`, [['model', 'older']])
    putOllama(root, `manifests/${at}/only-old`, [['model', 'older']])
    const { models } = await readCache({ tool: 'ollama', path: root })
    expect(models.map((model) => [model.source, ...namesOf(model)]).sort()).toEqual([
      ['tiny:list', 'tiny-list-q4_0.gguf'],
      ['tiny:only-old', 'tiny-only-old.gguf'],
      ['tiny:plain', 'tiny-plain-q4_0.gguf']
    ])
    expect(models.find(({ source }) => source === 'tiny:plain')!.files[0]!.expectedSha256).toBe(
      `sha256:${sha256('weights')}`
    )
  })

  test('keeps the order of shards, and reports models that only Ollama loads', async () => {
    const root = temporaryFolder()
    putOllama(root, 'manifests/registry.ollama.ai/library/big/70b', [
      ['model', 'one'],
      ['model', 'two']
    ])
    putOllama(root, 'manifests/registry.ollama.ai/library/gpt-oss/20b', [['model', 'g']], { model_family: 'gptoss' })
    putOllama(root, 'manifests/registry.ollama.ai/library/mlx/latest', [
      ['tensor', 't'],
      ['license', 'MIT']
    ])
    const { models } = await readCache({ tool: 'ollama', path: root })
    expect(namesOf(models[0])).toEqual(['big-70b-00001-of-00002.gguf', 'big-70b-00002-of-00002.gguf'])
    expect(models[1]!.warnings.map(({ code }) => code)).toEqual(['tool-only'])
    expect(models[2]!.warnings.map(({ code }) => code)).toEqual(['unsupported'])
  })

  test('reports an interrupted download, a missing blob and an invalid manifest', async () => {
    const root = temporaryFolder()
    const at = 'manifests/registry.ollama.ai/library'
    putOllama(root, `${at}/cut/1b`, [['model', 'weights']])
    truncateSync(join(root, `blobs/sha256-${sha256('weights')}`), 3)
    put(root, `${at}/gone/1b`, { mediaType: MANIFEST_TYPE, layers: [layer('model', 'gone')] })
    put(root, `${at}/none/1b`, 'no json')
    put(root, `${at}/escape/1b`, {
      layers: [{ mediaType: 'application/vnd.ollama.image.model', digest: `sha256:../../../../etc/passwd` }]
    })
    put(root, `${at}/too/deep/1b`, {})
    const { models, warnings } = await readCache({ tool: 'ollama', path: root })
    expect(models.map(({ source, warnings: own }) => [source, own.map(({ code }) => code)])).toEqual([
      ['cut:1b', ['size-differs']]
    ])
    expect(warnings.map(({ code }) => code).sort()).toEqual(['absent', 'bad-document', 'bad-document'])
  })
})

describe('Docker Model Runner', () => {
  test('reads the index, manifests and layers; names come from annotations or from the tag', async () => {
    const root = temporaryFolder()
    const blob = (type: string, content: string, path?: string): object => {
      put(root, `blobs/sha256/${sha256(content)}`, content)
      const annotations = path === undefined ? {} : { annotations: { 'org.cncf.model.filepath': path } }
      return {
        mediaType: `application/vnd.${type}`,
        digest: `sha256:${sha256(content)}`,
        size: content.length,
        ...annotations
      }
    }
    const manifest = (layers: readonly object[]): string => {
      const text = JSON.stringify({ schemaVersion: 2, layers })
      put(root, `manifests/sha256/${sha256(text)}`, text)
      return `sha256:${sha256(text)}`
    }
    const plain = manifest([
      blob('docker.ai.gguf.v3', 'weights'),
      blob('docker.ai.license', 'MIT'),
      blob('docker.ai.mmproj', 'eyes'),
      blob('docker.ai.chat.template.jinja', '{{ x }}'),
      blob('docker.ai.something.new', 'x')
    ])
    const neutral = manifest([
      blob('cncf.model.weight.v1.raw', 'first', 'model-00001-of-00002.safetensors'),
      blob('cncf.model.weight.v1.raw', 'second', 'model-00002-of-00002.safetensors'),
      blob('cncf.model.weight.config.v1.raw', '{}', 'config.json'),
      blob('cncf.model.doc.v1.raw', 'x', '../../escape')
    ])
    put(root, 'models.json', {
      models: [
        { id: plain, tags: ['ai/SmolLM2:360M-Q4_K_M'], files: [] },
        { id: neutral, tags: ['registry.example.com:5000/team/tiny:latest'], files: [] },
        { id: 'sha256:../../x', tags: [], files: [] }
      ]
    })
    // bundles are hard links for the runner: nothing to look at.
    put(root, `bundles/sha256/${plain.slice(7)}/model/model.gguf`, 'weights')
    const { models, warnings } = await readCache({ tool: 'dmr', path: root })
    expect(warnings.map(({ code }) => code)).toEqual(['bad-document'])
    expect(models.map(({ suggested }) => suggested)).toEqual([
      { ns: 'ai', name: 'smollm2-360m' },
      { ns: 'registry.example.com-5000-team', name: 'tiny' }
    ])
    expect(namesOf(models[0])).toEqual([
      'LICENSE',
      'SmolLM2-360M-Q4_K_M.gguf',
      'chat_template.jinja',
      'mmproj-SmolLM2-360M-Q4_K_M.gguf'
    ])
    expect(models[0]!.warnings.map(({ code }) => code)).toEqual(['unsupported'])
    expect(namesOf(models[1])).toEqual([
      'config.json',
      'model-00001-of-00002.safetensors',
      'model-00002-of-00002.safetensors'
    ])
    expect(models[1]!.warnings.map(({ code }) => code)).toEqual(['bad-name'])
    expect(models[1]!.files[1]!.expectedSha256).toBe(`sha256:${sha256('first')}`)
  })
})

test('RamaLama: the files that a reference lists, with digests where blobs are named by them', async () => {
  const root = temporaryFolder()
  const add = (
    model: string,
    tag: string,
    files: readonly { hash: string; name: string; content?: string }[]
  ): void => {
    for (const { hash, content } of files)
      if (content !== undefined) put(root, `${model}/blobs/${hash.replace(':', '-')}`, content)
    const list = files.map(({ hash, name }) => ({ hash, name, type: 'gguf' }))
    put(root, `${model}/refs/${tag}.json`, { hash: 'sha256:1', path: '', version: 'v1.0.1', files: list })
    for (const { hash, name } of files)
      link(root, `${model}/snapshots/sha256-1/${name}`, `../../blobs/${hash.replace(':', '-')}`)
  }
  add('huggingface/Acme/Tiny-GGUF', 'latest', [
    { hash: `sha256:${sha256('weights')}`, name: 'tiny-q4_k_m.gguf', content: 'weights' },
    { hash: 'a'.repeat(40), name: 'config.json', content: '{}' }
  ])
  add('ollama/library/tinyllama', 'latest', [{ hash: `sha256:${sha256('o')}`, name: 'tinyllama', content: 'o' }])
  add(
    'file/x/y',
    'z',
    [
      { hash: '../../../escape', name: 'a' },
      { hash: `sha256:${'0'.repeat(64)}`, name: 'b' }
    ].map((f) => f)
  )
  const { models, warnings } = await readCache({ tool: 'ramalama', path: root })
  expect(models.map(({ source, suggested, hub }) => [source, suggested, hub])).toEqual([
    ['huggingface://Acme/Tiny-GGUF:latest', { ns: 'acme', name: 'tiny-gguf' }, { repo: 'Acme/Tiny-GGUF' }],
    ['ollama://library/tinyllama:latest', { ns: 'ollama', name: 'tinyllama' }, undefined]
  ])
  expect(models[0]!.files).toMatchObject([
    { name: 'config.json', sizeBytes: 2 },
    { name: 'tiny-q4_k_m.gguf', expectedSha256: `sha256:${sha256('weights')}` }
  ])
  expect(models[0]!.files[0]).not.toHaveProperty('expectedSha256')
  expect(warnings.map(({ code }) => code).sort()).toEqual(['absent', 'bad-document'])
})

test('LM Studio: a folder for each publisher and model', async () => {
  const root = temporaryFolder()
  put(root, 'Acme Inc/Tiny 7B-GGUF/tiny-Q4_K_M.gguf', 'a')
  put(root, 'Acme Inc/Tiny 7B-GGUF/mmproj-tiny-f16.gguf', 'b')
  put(root, 'Acme Inc/Tiny 7B-GGUF/.DS_Store', 'x')
  put(root, 'mlx-community/tiny-4bit/model.safetensors', 'c')
  put(root, 'mlx-community/tiny-4bit/config.json', '{}')
  put(root, 'mlx-community/empty/readme.txt', '')
  const { models, warnings } = await readCache({ tool: 'lmstudio', path: root })
  expect(warnings).toEqual([])
  expect(models.map((model) => [model.source, model.suggested, namesOf(model)])).toEqual([
    ['Acme Inc/Tiny 7B-GGUF', { ns: 'acme-inc', name: 'tiny-7b-gguf' }, ['mmproj-tiny-f16.gguf', 'tiny-Q4_K_M.gguf']],
    ['mlx-community/tiny-4bit', { ns: 'mlx-community', name: 'tiny-4bit' }, ['config.json', 'model.safetensors']]
  ])
})

test('llama.cpp’s flat cache: origins by manifest, address or name', async () => {
  const root = temporaryFolder()
  const shards = ['big-00001-of-00002.gguf', 'big-00002-of-00002.gguf']
  for (const name of shards) put(root, `acme_Big-GGUF_Q8_${name}`, name)
  put(root, 'manifest=acme=Big-GGUF=Q8_0.json', {
    ggufFile: { rfilename: `Q8/${shards[0]}`, size: 23, lfs: { sha256: sha256(shards[0]!), size: 23, pointerSize: 1 } }
  })
  put(root, 'acme_Tiny-GGUF_tiny-q4_0.gguf', 'tiny')
  put(root, 'acme_Tiny-GGUF_tiny-q4_0.gguf.json', {
    etag: '"x"',
    url: 'https://huggingface.co/acme/Tiny-GGUF/resolve/main/sub/tiny-q4_0.gguf'
  })
  put(root, 'somebody_something_x-Q4_K_M.gguf', 'unknown')
  put(root, 'somebody_something_x-Q4_K_M.gguf.etag', '"x"')
  const { models, warnings } = await readCache({ tool: 'llama', path: root })
  expect(warnings).toEqual([])
  expect(models.map((model) => [model.source, model.suggested, namesOf(model)])).toEqual([
    ['acme/Big-GGUF', { ns: 'acme', name: 'big-gguf' }, [`Q8/${shards[0]}`, `Q8_${shards[1]}`]],
    ['acme/Tiny-GGUF', { ns: 'acme', name: 'tiny-gguf' }, ['sub/tiny-q4_0.gguf']],
    ['somebody_something_x', { ns: 'llama', name: 'somebody_something_x' }, ['somebody_something_x-Q4_K_M.gguf']]
  ])
  expect(models[0]!.files[0]!.expectedSha256).toBe(`sha256:${sha256(shards[0]!)}`)
})

test('any folder: owner/repo where folders say it, with the folders of quants below', async () => {
  const root = temporaryFolder()
  for (const name of [
    'Acme/Tiny-GGUF/tiny-Q4_0.gguf',
    'Acme/Tiny-GGUF/tiny-Q8_0.gguf',
    'Acme/Big-GGUF/BF16/big-BF16-00001-of-00002.gguf',
    'Acme/Big-GGUF/BF16/big-BF16-00002-of-00002.gguf',
    'Acme/Big-GGUF/UD-IQ2_XXS/big-UD-IQ2_XXS.gguf',
    'other/Two/a-Q4_0.gguf',
    'other/Two/b-Q4_0.gguf',
    'deep/er/Acme/Plain/plain.gguf'
  ])
    put(root, name, name)
  const { models } = await readCache({ tool: 'dir', path: root })
  expect(models.map(({ suggested: { ns, name }, files }) => [`${ns}/${name}`, files.length])).toEqual([
    ['acme/big-gguf', 2],
    ['acme/big-gguf', 1],
    ['acme/tiny-gguf', 2],
    ['acme/plain', 1],
    ['other/a', 1],
    ['other/b', 1]
  ])
})

test('any folder: whole models, and loose files by their base names', async () => {
  const folder = temporaryFolder()
  const root = join(folder, 'My Models')
  for (const name of [
    'llama-7b-Q4_K_M.gguf',
    'llama-7b-q8_0.gguf',
    'Qwen.Q6_K.gguf',
    'split-00001-of-00002.gguf',
    'split-00002-of-00002.gguf'
  ])
    put(root, name, name)
  put(root, 'vision/tiny-f16.gguf', 'v')
  put(root, 'vision/mmproj-model-f16.gguf', 'p')
  put(root, 'hf/tiny/config.json', '{}')
  put(root, 'hf/tiny/model.safetensors', 's')
  put(root, 'hf/tiny/tokenizer.json', '{}')
  put(root, 'hf/tiny/lora/adapter_config.json', '{}')
  put(root, '.git/x.gguf', 'x')
  put(root, 'notes.txt', 'x')
  const { models, warnings } = await readCache({ tool: 'dir', path: root })
  expect(warnings).toEqual([])
  expect(models.map((model) => [`${model.suggested.ns}/${model.suggested.name}`, namesOf(model)])).toEqual([
    ['my-models/qwen', ['Qwen.Q6_K.gguf']],
    ['my-models/llama-7b', ['llama-7b-Q4_K_M.gguf', 'llama-7b-q8_0.gguf']],
    ['my-models/split', ['split-00001-of-00002.gguf', 'split-00002-of-00002.gguf']],
    ['hf/tiny', ['config.json', 'lora/adapter_config.json', 'model.safetensors', 'tokenizer.json']],
    ['vision/tiny', ['mmproj-model-f16.gguf', 'tiny-f16.gguf']]
  ])
})
