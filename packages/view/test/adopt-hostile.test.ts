import { execFileSync } from 'node:child_process'
import { mkdirSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isName, isNamespace } from '@svc/ref'
import { readCache, TOOLS, type Tool } from '@svc/view'
import { describe, expect, test } from 'vitest'
import { temporaryFolder } from './support/artifact.ts'
import { put, sha256 } from './support/cache.ts'

describe('hostile folders', () => {
  const ALL: readonly Tool[] = [...TOOLS, 'dir']

  test.each(ALL)('%s: FIFOs, escaping or circular links and strange names never lead out or hang', async (tool) => {
    const folder = temporaryFolder()
    const root = join(folder, 'cache')
    put(folder, 'secret.gguf', 'secret')
    const places = [
      '',
      'a',
      'a/b',
      `models--a--b/snapshots/${'c'.repeat(40)}`,
      'manifests/h/n/m',
      'huggingface/a/b/refs'
    ]
    for (const place of places) {
      mkdirSync(join(root, place), { recursive: true })
      execFileSync('mkfifo', [join(root, place, 'fifo.gguf'), join(root, place, 'fifo.json')])
      symlinkSync(join(folder, 'secret.gguf'), join(root, place, 'out.gguf'))
      symlinkSync('/', join(root, place, 'out-folder'))
      symlinkSync('.', join(root, place, 'self'))
      symlinkSync('loop.gguf', join(root, place, 'loop.gguf'))
      writeFileSync(join(root, place, `${'n'.repeat(240)}.gguf`), 'x')
      writeFileSync(join(root, place, 'new\nline.gguf'), 'x')
      writeFileSync(join(root, place, 'back\\slash.gguf'), 'x')
      writeFileSync(
        Buffer.concat([Buffer.from(join(root, place, 'x')), Buffer.from([0xff]), Buffer.from('.gguf')]),
        'x'
      )
    }
    for (const document of ['models.json', 'manifest=a=b=c.json']) execFileSync('mkfifo', [join(root, document)])
    const { models } = await readCache({ tool, path: root })
    for (const model of models) {
      expect(isNamespace(model.suggested.ns) && isName(model.suggested.name)).toBe(true)
      for (const { path, name } of model.files) {
        expect(path.startsWith(`${root}/`)).toBe(true)
        expect(name).not.toMatch(/[\n\\]|^\/|\.\./)
      }
    }
  })

  test.each(ALL)('%s: large, deep or malformed documents', async (tool) => {
    const root = temporaryFolder()
    const deep = '['.repeat(200_000)
    const at = [
      'models.json',
      'manifests/h/n/m/t',
      'huggingface/a/refs/t.json',
      `models--a--b/trees/${'c'.repeat(40)}.json`
    ]
    for (const content of [
      deep,
      '{"models":{},"layers":7,"files":null}',
      '{"models":[null,1,"x",{"id":{},"tags":7}]}',
      'null'
    ]) {
      for (const path of at) put(root, path, content)
      expect((await readCache({ tool, path: root })).models).toEqual([])
    }
    for (const path of at) truncateSync(join(root, path), 100 * 1024 * 1024)
    expect((await readCache({ tool, path: root })).models).toEqual([])
  })

  const NO_DIGESTS = [
    '../secret.gguf',
    '../../../secret.gguf',
    '/etc/passwd',
    `${'a'.repeat(64)}/../../secret.gguf`,
    'A'.repeat(64),
    'a'.repeat(63),
    `${'a'.repeat(64)}\n`,
    `sha512:${'a'.repeat(128)}`,
    ''
  ]
  test.each(NO_DIGESTS)('a digest in a document is no path: %j', async (path) => {
    const folder = temporaryFolder()
    put(folder, 'secret.gguf', 'secret')
    const root = join(folder, 'cache')
    const digest = `sha256:${path}`
    const layers = ['application/vnd.ollama.image.model', 'application/vnd.docker.ai.gguf.v3'].map((mediaType) => ({
      mediaType,
      digest,
      size: 6,
      annotations: { 'org.cncf.model.filepath': path }
    }))
    const list = 'application/vnd.ollama.manifest.list.v2+json'
    const real = sha256('{}')
    put(root, 'manifests/registry.ollama.ai/library/a/b', { layers, config: { digest } })
    put(root, 'manifests/registry.ollama.ai/library/a/c', { mediaType: list, manifests: [{ digest }, { layers }] })
    put(root, 'models.json', {
      models: [
        { id: digest, tags: [path] },
        { id: `sha256:${real}`, tags: ['a/b'] }
      ]
    })
    put(root, `manifests/sha256/${real}`, { layers })
    for (const hash of [path, digest])
      put(root, `huggingface/a/b/refs/${hash.length}.json`, {
        files: [
          { hash, name: 'm.gguf' },
          { hash: 'a', name: path }
        ]
      })
    put(root, 'huggingface/a/b/blobs/a', 'x')
    put(root, 'manifest=a=b=c.json', { ggufFile: { rfilename: path, size: 6, lfs: { sha256: digest } } })
    put(root, 'a_b_m.gguf', 'x')
    put(root, 'a_b_m.gguf.json', { url: `https://hub.example/a/b/resolve/main/${path}` })
    const commit = 'c'.repeat(40)
    put(root, `models--a--b/trees/${commit}.json`, { format_version: 1, files: { [path]: { lfs_sha256: digest } } })
    put(root, 'models--a--b/refs/main', `../../../${commit}`)
    put(root, `models--a--b/snapshots/${commit}/m.gguf`, 'x')
    for (const tool of ALL) {
      const { models } = await readCache({ tool, path: root })
      for (const file of models.flatMap(({ files }) => files)) {
        expect([tool, file.path.startsWith(`${root}/`)]).toEqual([tool, true])
        expect([tool, file.name]).toEqual([tool, expect.not.stringMatching(/(^|\/)\.\.(\/|$)|^\//)])
        expect([tool, file.expectedSha256]).toEqual([tool, undefined])
      }
    }
    if (!path.includes('/')) return
    const read = async (tool: Tool) => (await readCache({ tool, path: root })).warnings.length
    for (const tool of ['ollama', 'dmr', 'ramalama'] as const) expect(await read(tool)).toBeGreaterThan(0)
  })

  test('folders below the depth limit are left out', async () => {
    const root = temporaryFolder()
    mkdirSync(join(root, 'acme/tiny', 'd/'.repeat(100)), { recursive: true })
    put(root, 'acme/tiny/a.gguf', 'a')
    const { models } = await readCache({ tool: 'lmstudio', path: root })
    expect(models[0]!.warnings.map(({ code }) => code)).toEqual(['too-many'])
  })

  test('a missing cache gives no models', async () => {
    const { models, warnings } = await readCache({ tool: 'hf', path: join(temporaryFolder(), 'absent') })
    expect(models).toEqual([])
    expect(warnings.map(({ code }) => code)).toEqual(['absent'])
  })
})
