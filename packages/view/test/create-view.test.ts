import { createHash } from 'node:crypto'
import {
  chmodSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync
} from 'node:fs'
import { dirname, join } from 'node:path'
import { digestFromHex } from '@svc/ref'
import { seededBytes } from '@svc/testkit/models'
import { createView, MARKER, readView, removeView, type ViewErrorCode, type ViewOptions } from '@svc/view'
import { describe, expect, test } from 'vitest'
import { type Artifact, makeArtifact, temporaryFolder } from './support/artifact.ts'
import { treeOf } from './support/tree.ts'

const CONFIG = '{ "model_type": "llama",\n  "x": "ünverändert" }\n'
const REPO = 'Acme/Tiny-7B'
const COMMIT = '0123456789abcdef0123456789abcdef01234567'

const everything = (root: string): Promise<Artifact> =>
  makeArtifact(
    root,
    [
      { name: 'modelconfig.json', kind: 'config', content: '{"quantization":"bf16"}' },
      {
        name: 'model-00001-of-00002.safetensors',
        kind: 'weights.safetensors',
        content: seededBytes(3_000_000, 1),
        part: 1
      },
      {
        name: 'model-00002-of-00002.safetensors',
        kind: 'weights.safetensors',
        content: seededBytes(2_000, 2),
        part: 2
      },
      {
        name: 'model.safetensors.index.json',
        kind: 'weights.aux',
        role: 'weights-index',
        content: '{"weight_map":{}}'
      },
      { name: 'tokenizer.tar', kind: 'tokenizer', content: { 'tokenizer.json': '{"t":1}', 'sub/vocab.txt': 'a\nb\n' } },
      { name: 'chat_template.jinja', kind: 'chat-template', content: '{{ messages }}' },
      {
        name: 'lora/adapter.tar',
        kind: 'adapter',
        content: { 'adapter_config.json': '{"r":8}', 'adapter_model.safetensors': seededBytes(5_000, 3) }
      },
      { name: 'modeling_tiny.py', kind: 'code', role: 'model', content: 'class Tiny: ...\n' }
    ],
    { upstreamConfig: CONFIG, annotations: { 'svc.hf.repo': REPO, 'svc.hf.revision': COMMIT } }
  )

const NAMES = [
  'chat_template.jinja',
  'config.json',
  'lora/adapter_config.json',
  'lora/adapter_model.safetensors',
  'model-00001-of-00002.safetensors',
  'model-00002-of-00002.safetensors',
  'model.safetensors.index.json',
  'modeling_tiny.py',
  'sub/vocab.txt',
  'tokenizer.json'
]

const codeOf = async (promise: Promise<unknown>): Promise<ViewErrorCode | 'resolved'> =>
  promise.then(
    () => 'resolved' as const,
    (error: { code: ViewErrorCode }) => error.code
  )

/** Nothing but the places themselves: no working folders. */
const namesIn = (folder: string): string[] => readdirSync(folder).sort()

describe.each(['symlink', 'copy', 'hardlink'] as const)('layout files, mode %s', (mode) => {
  test('holds every file under its real name, with its bytes', async () => {
    const folder = temporaryFolder()
    const artifact = await everything(join(folder, 'store'))
    const path = join(folder, 'view')
    const view = await createView(artifact, { path, mode })
    expect(view).toMatchObject({ made: true, path, folder: path, layout: 'files', mode })
    expect(Object.keys(treeOf(path))).toEqual([MARKER, ...NAMES].sort())
    expect(view.files.map(({ name }) => name).sort()).toEqual(NAMES)
    for (const file of view.files) {
      const bytes = readFileSync(file.path)
      expect(bytes.length).toBe(file.sizeBytes)
      if (file.digest) expect(`sha256:${createHash('sha256').update(bytes).digest('hex')}`).toBe(file.digest)
      expect(statSync(file.path).mode & 0o222).toBe(0)
    }
    expect(readFileSync(join(path, 'config.json'), 'utf8')).toBe(CONFIG)
    expect(readFileSync(join(path, 'sub/vocab.txt'), 'utf8')).toBe('a\nb\n')
    const weights = lstatSync(join(path, 'model-00001-of-00002.safetensors'))
    expect(weights.isSymbolicLink()).toBe(mode === 'symlink')
    expect(weights.nlink).toBe(mode === 'hardlink' ? 2 : 1)
    expect(namesIn(folder)).toEqual(['store', 'view'])
    const { made: _, ...same } = view
    expect(await readView(path)).toEqual(same)
  })

  test('is kept when whole, and remade when something is missing', async () => {
    const folder = temporaryFolder()
    const artifact = await everything(join(folder, 'store'))
    const options: ViewOptions = { path: join(folder, 'view'), mode }
    await createView(artifact, options)
    const before = lstatSync(options.path)
    expect((await createView(artifact, options)).made).toBe(false)
    expect(lstatSync(options.path).ino).toBe(before.ino)
    rmSync(join(options.path, 'model-00002-of-00002.safetensors'))
    expect((await createView(artifact, options)).made).toBe(true)
    expect(readFileSync(join(options.path, 'model-00002-of-00002.safetensors'))).toEqual(seededBytes(2_000, 2))
    expect(namesIn(folder)).toEqual(['store', 'view'])
  })
})

describe('layout hf', () => {
  test.each(['symlink', 'copy', 'hardlink'] as const)('is a hub cache (%s)', async (mode) => {
    const folder = temporaryFolder()
    const artifact = await everything(join(folder, 'store'))
    const view = await createView(artifact, { path: join(folder, 'cache'), layout: 'hf', mode })
    const repo = join(folder, 'cache/models--Acme--Tiny-7B')
    expect(view.folder).toBe(join(repo, 'snapshots', COMMIT))
    expect(readFileSync(join(repo, 'refs/main'), 'utf8')).toBe(COMMIT)
    const links = treeOf(view.folder)
    expect(Object.keys(links)).toEqual(NAMES)
    const sha256 = createHash('sha256').update(seededBytes(2_000, 2)).digest('hex')
    expect(links['model-00002-of-00002.safetensors']).toBe(`-> ../../blobs/${sha256}`)
    const git = createHash('sha1')
      .update(`blob ${Buffer.byteLength(CONFIG)}\0${CONFIG}`)
      .digest('hex')
    expect(links['config.json']).toBe(`-> ../../blobs/${git}`)
    expect(links['sub/vocab.txt']).toMatch(/^-> \.\.\/\.\.\/\.\.\/blobs\/[0-9a-f]{40}$/)
    for (const name of NAMES) expect(statSync(join(view.folder, name)).isFile()).toBe(true)
    expect(lstatSync(join(repo, 'blobs', sha256)).isSymbolicLink()).toBe(mode === 'symlink')
    // only the model, and one folder that cache tools skip.
    expect(namesIn(join(folder, 'cache'))).toEqual(['.locks', 'models--Acme--Tiny-7B'])
    expect((await createView(artifact, { path: join(folder, 'cache'), layout: 'hf', mode })).made).toBe(false)
    expect(await removeView(join(folder, 'cache'))).toBe(true)
    expect(existsSync(artifact.blobPath(artifact.files[1]!.digest))).toBe(true)
  })

  test('needs a repository, from the annotation or the caller', async () => {
    const folder = temporaryFolder()
    const own = await makeArtifact(join(folder, 'store'), [{ name: 'a-q8_0.gguf', kind: 'weights.gguf', content: 'x' }])
    const options = { path: join(folder, 'cache'), layout: 'hf' } as const
    expect(await codeOf(createView(own, options))).toBe('E_BAD_NAME')
    for (const repo of ['../x', 'a/b/c', 'a/..', '', '/a', 'a--b/c'])
      expect([repo, await codeOf(createView(own, { ...options, repo }))]).toEqual([repo, 'E_BAD_NAME'])
    const view = await createView(own, { ...options, repo: 'acme/tiny' })
    expect(view.folder).toMatch(/\/models--acme--tiny\/snapshots\/[0-9a-f]{40}$/)
  })
})

describe.each(['symlink', 'copy', 'hardlink'] as const)('layout hf, many models in one folder (%s)', (mode) => {
  const quant = (store: string, name: string, seed: number, repo = REPO, commit = COMMIT): Promise<Artifact> =>
    makeArtifact(
      store,
      [
        { name: `${name}.gguf`, kind: 'weights.gguf', content: seededBytes(4_000, seed) },
        { name: 'chat_template.jinja', kind: 'chat-template', content: '{{ messages }}' }
      ],
      { annotations: { 'svc.hf.repo': repo, 'svc.hf.revision': commit } }
    )
  const NEXT = 'f'.repeat(40)

  test('quants of one commit lie side by side; other commits and repositories are unchanged', async () => {
    const folder = temporaryFolder()
    const store = join(folder, 'store')
    const options = { path: join(folder, 'cache'), layout: 'hf', mode } as const
    const small = await quant(store, 'small-q4_0', 1)
    const large = await quant(store, 'small-q8_0', 2)
    const later = await quant(store, 'small-q4_0', 3, REPO, NEXT)
    const other = await quant(store, 'other-q4_0', 4, 'gpt2', NEXT)
    for (const artifact of [small, large, later, other]) expect((await createView(artifact, options)).made).toBe(true)
    const repo = join(options.path, 'models--Acme--Tiny-7B')
    const content = (commit: string): Record<string, Buffer> =>
      Object.fromEntries(
        namesIn(join(repo, 'snapshots', commit)).map((name) => [
          name,
          readFileSync(join(repo, 'snapshots', commit, name))
        ])
      )
    const template = { 'chat_template.jinja': Buffer.from('{{ messages }}') }
    expect(content(COMMIT)).toEqual({
      ...template,
      'small-q4_0.gguf': seededBytes(4_000, 1),
      'small-q8_0.gguf': seededBytes(4_000, 2)
    })
    expect(content(NEXT)).toEqual({ ...template, 'small-q4_0.gguf': seededBytes(4_000, 3) })
    expect(readFileSync(join(repo, 'refs/main'), 'utf8')).toBe(NEXT)
    expect(namesIn(options.path)).toEqual(['.locks', 'models--Acme--Tiny-7B', 'models--gpt2'])
    expect((await readView(options.path))!.others).toEqual(
      [later, large, small].map(({ manifestDigest }) => manifestDigest)
    )
    // what is there is found again, and what is asked for again becomes the one that main names
    expect(await createView(other, options)).toMatchObject({ made: false })
    expect(await createView(later, options)).toMatchObject({ made: false, folder: join(repo, 'snapshots', NEXT) })
    expect((await createView(small, options)).made).toBe(true)
    expect(readFileSync(join(repo, 'refs/main'), 'utf8')).toBe(COMMIT)
    expect(Object.keys(content(COMMIT))).toHaveLength(3)
    expect(await createView(large, options)).toMatchObject({ made: false })
    expect(await removeView(options.path)).toBe(true)
    expect(existsSync(options.path)).toBe(false)
    expect(existsSync(small.blobPath(small.files[0]!.digest))).toBe(true)
  })

  test('someone else’s file is kept, and deleted files stay deleted', async () => {
    const folder = temporaryFolder()
    const store = join(folder, 'store')
    const options = { path: join(folder, 'cache'), layout: 'hf', mode } as const
    const first = await createView(await quant(store, 'small-q4_0', 1), options)
    writeFileSync(join(first.folder, 'mine.txt'), 'mine')
    const next = await quant(store, 'other-q4_0', 4, 'gpt2', NEXT)
    expect(await codeOf(createView(next, options))).toBe('E_NOT_A_VIEW')
    rmSync(join(first.folder, 'mine.txt'))
    rmSync(join(first.folder, 'small-q4_0.gguf'))
    await createView(next, options)
    expect(namesIn(first.folder)).toEqual(['chat_template.jinja'])
  })

  test('the marker holds each model once, however many there are', async () => {
    const folder = temporaryFolder()
    const options = { path: join(folder, 'cache'), layout: 'hf', mode } as const
    for (let seed = 1; seed <= 4; seed++)
      await createView(await quant(join(folder, 'store'), `m${seed}-q4_0`, seed), options)
    const text = readFileSync(join(options.path, '.locks', MARKER), 'utf8')
    expect(text.match(/"manifest": /g)).toHaveLength(4)
  })

  test('removing one leaves the others byte for byte; removing the last removes the folder', async () => {
    const folder = temporaryFolder()
    const store = join(folder, 'store')
    const options = { path: join(folder, 'cache'), layout: 'hf', mode } as const
    const small = await quant(store, 'small-q4_0', 1)
    const large = await quant(store, 'small-q8_0', 2)
    const other = await quant(store, 'other-q4_0', 4, 'gpt2', NEXT)
    const later = await quant(store, 'small-q4_0', 3, REPO, NEXT)
    for (const artifact of [small, other]) await createView(artifact, options)
    const before = treeOf(options.path)
    const withoutMarker = ({ [`.locks/${MARKER}`]: _, ...rest }: Record<string, string>): Record<string, string> => rest
    for (const artifact of [large, later]) await createView(artifact, options)
    expect(await removeView(options.path, digestFromHex('0'.repeat(64)))).toBe(false)
    for (const { manifestDigest } of [later, large])
      expect([await removeView(options.path, manifestDigest), existsSync(options.path)]).toEqual([true, true])
    expect(withoutMarker(treeOf(options.path))).toEqual(withoutMarker(before))
    expect(await readView(options.path)).toMatchObject({
      manifestDigest: other.manifestDigest,
      others: [small.manifestDigest]
    })
    expect((await createView(small, options)).made).toBe(false)
    expect(await removeView(options.path, other.manifestDigest)).toBe(true)
    expect(await removeView(options.path, other.manifestDigest)).toBe(false)
    expect(namesIn(options.path)).toEqual(['.locks', 'models--Acme--Tiny-7B'])
    expect(await removeView(options.path, small.manifestDigest)).toBe(true)
    expect(namesIn(folder)).toEqual(['store'])
  })

  test('after a removal, a shared file name leads to the remaining model’s file again', async () => {
    const folder = temporaryFolder()
    const options = { path: join(folder, 'cache'), layout: 'hf', mode, repo: 'a/b' } as const
    const [first, second] = await Promise.all(
      [1, 2].map((seed) =>
        makeArtifact(join(folder, 'store'), [
          { name: `m-q${seed}_0.gguf`, kind: 'weights.gguf', content: seededBytes(4_000, seed) },
          { name: 'chat_template.jinja', kind: 'chat-template', content: `template ${seed}` }
        ])
      )
    )
    const { folder: snapshot } = await createView(first!, options)
    await createView(second!, options)
    expect(readFileSync(join(snapshot, 'chat_template.jinja'), 'utf8')).toBe('template 2')
    await removeView(options.path, second!.manifestDigest)
    expect(readFileSync(join(snapshot, 'chat_template.jinja'), 'utf8')).toBe('template 1')
    expect(namesIn(snapshot)).toEqual(['chat_template.jinja', 'm-q1_0.gguf'])
    expect(await removeView(options.path)).toBe(true)
  })
})

describe('symbolic links', () => {
  test('are relative within the root, so that it can move, and absolute from elsewhere', async () => {
    const folder = temporaryFolder()
    const artifact = await everything(join(folder, 'store'))
    mkdirSync(join(folder, 'store/views'))
    const name = 'model-00001-of-00002.safetensors'
    const inside = await createView(artifact, { path: join(folder, 'store/views/x'), root: artifact.root })
    const digest = artifact.files[1]!.digest.slice(7)
    expect(treeOf(inside.path)[name]).toBe(`-> ../../blobs/sha256/${digest.slice(0, 2)}/${digest.slice(2)}`)
    const hub = await createView(artifact, { path: join(folder, 'store/views/h'), root: artifact.root, layout: 'hf' })
    const outside = await createView(artifact, { path: join(folder, 'view'), root: artifact.root })
    expect(treeOf(outside.path)[name]).toBe(`-> ${artifact.blobPath(artifact.files[1]!.digest)}`)
    renameSync(join(folder, 'store'), join(folder, 'moved'))
    for (const made of [inside, hub]) {
      const moved = made.folder.replace(join(folder, 'store'), join(folder, 'moved'))
      for (const file of NAMES) expect(statSync(join(moved, file)).isFile()).toBe(true)
    }
  })

  test('lead to the blob even if the paths contain links', async () => {
    const folder = temporaryFolder()
    mkdirSync(join(folder, 'deep/er'), { recursive: true })
    symlinkSync(join(folder, 'deep/er'), join(folder, 'short'))
    const artifact = await everything(join(folder, 'short/store'))
    mkdirSync(join(folder, 'deep/er/store/views'))
    const view = await createView(artifact, {
      path: join(folder, 'short/store/views/v'),
      root: join(folder, 'short/store')
    })
    expect(view.path).toBe(join(folder, 'deep/er/store/views/v'))
    for (const name of NAMES) expect(statSync(join(view.path, name)).isFile()).toBe(true)
    expect(Object.values(treeOf(view.path)).filter((text) => text.startsWith('-> /'))).toEqual([])
  })
})

describe('an occupied place', () => {
  const cases: readonly [string, (path: string) => void][] = [
    ['a file', (path) => writeFileSync(path, 'mine')],
    ['a folder of somebody', (path) => (mkdirSync(path), writeFileSync(join(path, 'mine'), 'mine'))],
    ['a link to a view', (path) => symlinkSync(join(dirname(path), 'other'), path)],
    ['a dangling link', (path) => symlinkSync('nowhere', path)],
    ['a marker of another kind', (path) => (mkdirSync(path), writeFileSync(join(path, MARKER), '{"format":2}'))],
    ['a marker that is no JSON', (path) => (mkdirSync(path), writeFileSync(join(path, MARKER), 'x'))],
    [
      'a marker that is a link',
      (path) => (mkdirSync(path), symlinkSync(join(dirname(path), 'other', MARKER), join(path, MARKER)))
    ],
    [
      'a marker that names files outside',
      (path) => {
        mkdirSync(path)
        const marker = JSON.parse(readFileSync(join(dirname(path), 'other', MARKER), 'utf8')) as {
          files: { at: string }[]
        }
        marker.files[0]!.at = '../../x'
        writeFileSync(join(path, MARKER), JSON.stringify(marker))
      }
    ],
    [
      'a view with somebody’s file in it',
      (path) => {
        renameSync(join(dirname(path), 'other'), path)
        writeFileSync(join(path, 'finetune.gguf'), 'mine')
      }
    ]
  ]
  test.each(cases)('%s is neither replaced nor removed', async (_, make) => {
    const folder = temporaryFolder()
    const artifact = await everything(join(folder, 'store'))
    await createView(artifact, { path: join(folder, 'other') })
    make(join(folder, 'place'))
    const before = treeOf(folder)
    for (const layout of ['files', 'hf'] as const)
      expect(await codeOf(createView(artifact, { path: join(folder, 'place'), layout }))).toBe('E_NOT_A_VIEW')
    expect(await codeOf(removeView(join(folder, 'place')))).toBe('E_NOT_A_VIEW')
    expect(treeOf(folder)).toEqual(before)
  })

  test('an empty folder is taken, a link to one is not', async () => {
    const folder = temporaryFolder()
    const artifact = await everything(join(folder, 'store'))
    for (const layout of ['files', 'hf'] as const) {
      mkdirSync(join(folder, layout))
      expect((await createView(artifact, { path: join(folder, layout), layout })).made).toBe(true)
      expect((await readView(join(folder, layout)))?.manifestDigest).toBe(artifact.manifestDigest)
    }
    mkdirSync(join(folder, 'empty'))
    symlinkSync('empty', join(folder, 'link'))
    expect(await codeOf(createView(artifact, { path: join(folder, 'link') }))).toBe('E_NOT_A_VIEW')
    expect(await removeView(join(folder, 'empty'))).toBe(false)
    expect(namesIn(join(folder, 'empty'))).toEqual([])
  })

  test('names at the source that are unusable or taken leave a file its own', async () => {
    const folder = temporaryFolder()
    const content = { 'a-q8_0.gguf': 'a', 'b-q8_0.gguf': 'b', 'c-q8_0.gguf': 'c' }
    const artifact = await makeArtifact(
      join(folder, 'store'),
      Object.entries(content).map(([name, content]) => ({ name, kind: 'weights.gguf', content })),
      { annotations: { 'svc.hf.repo': 'acme/other' } }
    )
    const upstreamNames = { 'a-q8_0.gguf': '../../A.gguf', 'b-q8_0.gguf': 'B-Q8_0.gguf', 'c-q8_0.gguf': 'b-Q8_0.gguf' }
    const { folder: snapshot } = await createView(
      { ...artifact, upstreamNames },
      { path: join(folder, 'x'), layout: 'hf' }
    )
    expect(namesIn(snapshot)).toEqual(['B-Q8_0.gguf', 'a-q8_0.gguf', 'b-Q8_0.gguf'])
    const plain = await createView({ ...artifact, upstreamNames }, { path: join(folder, 'y') })
    expect(namesIn(plain.folder)).toEqual([MARKER, ...Object.keys(content)])
  })

  test('a view of another model stays if the caller says so; a hub cache takes one more', async () => {
    const folder = temporaryFolder()
    const first = await everything(join(folder, 'store'))
    const second = await makeArtifact(
      join(folder, 'store'),
      [{ name: 'b-q8_0.gguf', kind: 'weights.gguf', content: 'b' }],
      { annotations: { 'svc.hf.repo': 'acme/other' } }
    )
    const path = join(folder, 'x')
    const options = { path, mayReplace: false } as const
    await createView(first, { path })
    const before = treeOf(path)
    for (const layout of ['files', 'hf'] as const) {
      const error = await createView(second, { ...options, layout }).catch((thrown: unknown) => thrown)
      expect(error).toMatchObject({ code: 'E_TAKEN', details: { candidates: [first.manifestDigest] } })
    }
    expect(treeOf(path)).toEqual(before)
    // the same model in another mode is no other model
    expect((await createView(first, { ...options, mode: 'copy' })).made).toBe(true)
    const cache = { path: join(folder, 'cache'), layout: 'hf', mayReplace: false } as const
    for (const artifact of [first, second]) expect((await createView(artifact, cache)).made).toBe(true)
  })

  test('an earlier view of another model, layout or mode is replaced whole', async () => {
    const folder = temporaryFolder()
    const artifact = await everything(join(folder, 'store'))
    const other = await makeArtifact(join(folder, 'store'), [
      { name: 'b-q8_0.gguf', kind: 'weights.gguf', content: 'b' }
    ])
    const path = join(folder, 'view')
    await createView(artifact, { path })
    await createView(other, { path })
    expect(Object.keys(treeOf(path))).toEqual([MARKER, 'b-q8_0.gguf'])
    await createView(artifact, { path, layout: 'hf', mode: 'copy' })
    expect(namesIn(path)).toEqual(['.locks', 'models--Acme--Tiny-7B'])
    expect((await readView(path))?.mode).toBe('copy')
    expect(namesIn(folder)).toEqual(['store', 'view'])
  })

  test('an earlier view of other companions is kept, and a held one is not made again, if the caller says so', async () => {
    const folder = temporaryFolder()
    const artifact = await everything(join(folder, 'store'))
    const { digest, size } = artifact.manifest.files.find(({ kind }) => kind === 'code')!
    const withCompanion = (path: string, seed: string): Artifact => ({
      ...artifact,
      companions: {
        digest: digestFromHex(createHash('sha256').update(seed).digest('hex')),
        files: [{ path, size, digest }]
      }
    })
    const [one, two] = [withCompanion('one.txt', '1'), withCompanion('two.txt', '2')]
    const path = join(folder, 'view')
    await createView(one, { path })
    const before = treeOf(path)
    for (const other of [two, artifact])
      expect(await codeOf(createView(other, { path, keepsOthers: true }))).toBe('E_TAKEN')
    expect(await createView(one, { path, keepsOthers: true, isHeld: true })).toMatchObject({ made: false })
    expect(await codeOf(createView(two, { path, isHeld: true }))).toBe('E_BAD_TARGET')
    expect(treeOf(path)).toEqual(before)
    expect((await createView(two, { path })).made).toBe(true)
    // a companion that is not shown any more is a reason to make it again, one that is not shown is none
    const hidden = { ...two, without: new Set(['two.txt']) }
    expect((await createView(hidden, { path, keepsOthers: true })).files.map(({ name }) => name)).not.toContain(
      'two.txt'
    )
    expect((await createView(hidden, { path, keepsOthers: true })).made).toBe(false)
  })

  test('nothing takes the name of a companion that is not shown', async () => {
    const folder = temporaryFolder()
    const artifact = await everything(join(folder, 'store'))
    const { digest, size } = artifact.manifest.files.find(({ kind }) => kind === 'code')!
    const source = {
      ...artifact,
      upstreamConfig: '{"auto_map":"evil.py"}',
      companions: { digest, files: [{ path: 'config.json', size, digest }] },
      without: new Set(['config.json', 'modeling_tiny.py'])
    }
    const names = (await createView(source, { path: join(folder, 'view') })).files.map(({ name }) => name)
    expect([names.includes('config.json'), names.includes('modeling_tiny.py')]).toEqual([false, true])
  })

  test('twenty simultaneous makers leave one whole view', async () => {
    const folder = temporaryFolder()
    const artifact = await everything(join(folder, 'store'))
    const path = join(folder, 'view')
    const results = await Promise.allSettled(
      Array.from({ length: 20 }, () => createView(artifact, { path, mode: 'copy' }))
    )
    expect(results.some(({ status }) => status === 'fulfilled')).toBe(true)
    for (const result of results) if (result.status === 'rejected') throw result.reason
    expect(Object.keys(treeOf(path))).toEqual([MARKER, ...NAMES].sort())
    expect(namesIn(folder)).toEqual(['store', 'view'])
  })

  test.each(['view', './view', '/', '/a\0b'])('%j is refused', async (path) => {
    const artifact = await everything(temporaryFolder())
    expect(await codeOf(createView(artifact, { path }))).toBe('E_BAD_TARGET')
  })

  test('a missing parent folder is refused, and removing nothing returns false', async () => {
    const folder = temporaryFolder()
    const artifact = await everything(folder)
    expect(await codeOf(createView(artifact, { path: join(folder, 'a/b') }))).toBe('E_BAD_TARGET')
    expect(await removeView(join(folder, 'a/b'))).toBe(false)
    expect(await readView(join(folder, 'a/b'))).toBeUndefined()
    expect(await removeView(join(folder, 'absent'))).toBe(false)
  })
})

describe('failures that leave nothing behind', () => {
  const damages: readonly [string, ViewErrorCode, (artifact: Artifact) => void, ViewOptions['mode']?][] = [
    ['an absent blob', 'E_MISSING_BLOB', ({ blobPath, files }) => rmSync(blobPath(files[2]!.digest))],
    [
      'a blob cut short',
      'E_CORRUPT_BLOB',
      ({ blobPath, files }) => {
        chmodSync(blobPath(files[1]!.digest), 0o644)
        truncateSync(blobPath(files[1]!.digest), 10)
      }
    ],
    [
      'a folder in place of a blob',
      'E_CORRUPT_BLOB',
      ({ blobPath, files }) => {
        rmSync(blobPath(files[1]!.digest))
        mkdirSync(blobPath(files[1]!.digest))
      }
    ],
    [
      'other bytes in a blob that is copied',
      'E_CORRUPT_BLOB',
      ({ blobPath, files }) => flip(blobPath(files[1]!.digest)),
      'copy'
    ],
    ['other bytes in a tar', 'E_CORRUPT_BLOB', ({ blobPath, files }) => flip(blobPath(files[4]!.digest), 520)]
  ]
  test.each(damages)('%s: %s', async (_, code, damage, mode = 'symlink') => {
    const folder = temporaryFolder()
    const artifact = await everything(join(folder, 'store'))
    damage(artifact)
    const before = namesIn(folder)
    expect(await codeOf(createView(artifact, { path: join(folder, 'view'), mode }))).toBe(code)
    expect(namesIn(folder)).toEqual(before)
  })

  test('absent blobs, of which the error names each', async () => {
    const folder = temporaryFolder()
    const artifact = await everything(join(folder, 'store'))
    const digests = [artifact.files[2]!.digest, artifact.files[5]!.digest]
    for (const digest of digests) rmSync(artifact.blobPath(digest))
    const error = await createView(artifact, { path: join(folder, 'view') }).catch((caught: unknown) => caught)
    expect(error).toMatchObject({ code: 'E_MISSING_BLOB', details: { missing: digests } })
  })

  test('an abort during a copy', async () => {
    const folder = temporaryFolder()
    const artifact = await everything(join(folder, 'store'))
    const controller = new AbortController()
    const options = { path: join(folder, 'view'), mode: 'copy', signal: controller.signal } as const
    const onCopied = (): void => controller.abort(new Error('enough'))
    expect(await codeOf(createView(artifact, { ...options, onCopied }))).toBe('E_ABORTED')
    expect(namesIn(folder)).toEqual(['store'])
  })

  test('names that are not paths below a folder, or collide', async () => {
    const folder = temporaryFolder()
    const digest = digestFromHex(createHash('sha256').update('x').digest('hex'))
    const base = await makeArtifact(join(folder, 'store'), [{ name: 'x', kind: 'code', content: 'x' }])
    const long = 'a'.repeat(256)
    const lists = [
      ['../x'],
      ['/x'],
      ['a/../x'],
      ['a//x'],
      ['./x'],
      ['a\\x'],
      ['a\u0000'],
      [long],
      [`${'a/'.repeat(40)}x`],
      [''],
      ['\ud800'],
      ['x', 'x'],
      ['x', 'x/y'],
      ['x/y', 'x'],
      ['\u00e9', 'e\u0301'],
      [MARKER],
      [`${MARKER}/x`],
      ['.git'],
      ['a/.GIT/config'],
      ['.g\u200cit/config'],
      ['GIT~1/config'],
      ['HEAD']
    ]
    for (const names of lists) {
      const files = names.map((name) => ({ name, kind: 'code' as const, digest, size: 1 }))
      const source = { ...base, manifest: { files, annotations: {} } }
      expect([names, await codeOf(createView(source, { path: join(folder, 'view') }))]).toEqual([names, 'E_BAD_NAME'])
    }
    expect(namesIn(folder)).toEqual(['store'])
  })
})

test('companions that would turn the folder into a git repository are left out', async () => {
  const folder = temporaryFolder()
  const artifact = await everything(join(folder, 'store'))
  const { digest, size } = artifact.manifest.files.find(({ kind }) => kind === 'code')!
  const paths = [
    '.git/config',
    '.git/HEAD',
    '.git/objects/x',
    '.git/refs/x',
    'HEAD',
    'sub/.git',
    '.gitattributes',
    'head.py'
  ]
  const companions = { digest, files: paths.map((path) => ({ path, size, digest })) }
  const view = await createView({ ...artifact, companions }, { path: join(folder, 'view') })
  expect(view.files.filter(({ kind }) => kind === 'companion').map(({ name }) => name)).toEqual([
    '.gitattributes',
    'head.py'
  ])
  expect(existsSync(join(folder, 'view', '.git'))).toBe(false)
})

function flip(path: string, at = 100): void {
  chmodSync(path, 0o644)
  const bytes = readFileSync(path)
  bytes[at]! ^= 1
  writeFileSync(path, bytes)
}

test('a hard link across file systems is refused with that reason', async (context) => {
  if (!existsSync('/dev/shm') || statSync('/dev/shm').dev === statSync(temporaryFolder()).dev) return context.skip()
  const artifact = await everything(temporaryFolder())
  const path = join(temporaryFolder('/dev/shm'), 'view')
  expect(await codeOf(createView(artifact, { path, mode: 'hardlink' }))).toBe('E_NOT_LINKABLE')
  expect((await createView(artifact, { path, mode: 'copy' })).made).toBe(true)
})

test('removing a view keeps link targets and other hard links', async () => {
  const folder = temporaryFolder()
  const artifact = await everything(join(folder, 'store'))
  const path = join(folder, 'view')
  await createView(artifact, { path, mode: 'hardlink' })
  linkSync(join(path, 'chat_template.jinja'), join(folder, 'kept'))
  expect(await removeView(path)).toBe(true)
  expect(namesIn(folder)).toEqual(['kept', 'store'])
  for (const { digest } of artifact.files) expect(existsSync(artifact.blobPath(digest))).toBe(true)
  expect(await removeView(path)).toBe(false)
})
