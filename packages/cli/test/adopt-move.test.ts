// `svc adopt --move` takes nothing away that is not here, whatever the models over there are called.
import { chmodSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createClient } from '@svc/client'
import { makeGguf } from '@svc/testkit/models'
import fc from 'fast-check'
import { expect, it, vi } from 'vitest'
import { type TestDaemon, testDaemon } from './support.ts'
import { put, putDocker, putHub, putOllama, putRamaLama, sha256 } from './tool-caches.ts'

vi.setConfig({ testTimeout: 60_000 })

const weights = (seed: number): Buffer => makeGguf({ seed })

/** The digests of what is here whole and has a name, with its references. */
async function named(daemon: TestDaemon): Promise<Map<string, Set<string>>> {
  const client = createClient({ socketPath: daemon.socketPath })
  const refs = new Map<string, Set<string>>()
  for (const { ns, name, members } of (await client.models()).namespaces) {
    for (const { quant } of members) {
      const { files, missing } = await client.open(`svc:///${ns}/${name}:${quant}`)
      if (missing !== undefined) continue
      for (const { digest } of files) refs.set(digest, (refs.get(digest) ?? new Set()).add(`${ns}/${name}:${quant}`))
    }
  }
  client.close()
  return refs
}

const isThere = (path: string, bytes: Buffer): boolean => existsSync(path) && readFileSync(path).equals(bytes)

it('two sizes of one model, as Ollama tags them, keep a name each', async () => {
  const daemon = await testDaemon()
  const root = join(daemon.folder, 'ollama')
  const [small, large] = [weights(1), weights(2)]
  putOllama(root, 'qwen3', '4b', small, 'Q4_K_M')
  putOllama(root, 'qwen3', '8b', large, 'Q4_K_M')
  const { code, stdout } = await daemon.svc('adopt', root, '--move', '--yes')
  expect([code, stdout.trim().split('\n').slice(-2)]).toEqual([0, ['ollama/qwen3-4b:q4_k_m', 'ollama/qwen3-8b:q4_k_m']])
  expect((await daemon.svc('gc')).code).toBe(0)
  const refs = await named(daemon)
  for (const bytes of [small, large]) expect(refs.get(`sha256:${sha256(bytes)}`)?.size).toBe(1)
})

it('models that would get one name and quant get a name each, and keep it the next time', async () => {
  const daemon = await testDaemon()
  const env = { HOME: daemon.folder }
  put(join(daemon.folder, '.lmstudio-home-pointer'), daemon.folder)
  const adopting = async () => {
    await daemon.svcWith(['adopt', 'lmstudio'], { env })
    return named(daemon)
  }
  put(join(daemon.folder, 'models/Acme Inc/Tiny/tiny-q8_0.gguf'), weights(3))
  put(join(daemon.folder, 'models/acme-inc/tiny/tiny-q8_0.gguf'), weights(4))
  const refs = await adopting()
  const [first, second] = [weights(3), weights(4)].map((bytes) => [...(refs.get(`sha256:${sha256(bytes)}`) ?? [])])
  expect([...first!, ...second!]).toEqual(['acme-inc/tiny:q8_0', 'acme-inc/tiny-2:q8_0'])
  expect(await adopting()).toEqual(refs)
})

it('what has the name here already stays, and so do the originals, until --replace', async () => {
  const daemon = await testDaemon()
  const root = join(daemon.folder, 'ollama')
  const [mine, theirs] = [weights(5), weights(6)]
  writeFileSync(join(daemon.folder, 'mine-q8_0.gguf'), mine)
  await daemon.svc('import', 'local', 'mine-q8_0.gguf', '--as', 'ollama/tiny')
  putOllama(root, 'tiny', 'latest', theirs)
  const blob = join(root, `blobs/sha256-${sha256(theirs)}`)
  expect((await daemon.svc('adopt', root, '--move', '--yes')).code).not.toBe(0)
  expect(isThere(blob, theirs)).toBe(true)
  expect([...(await named(daemon)).keys()]).toContain(`sha256:${sha256(mine)}`)
  expect((await daemon.svc('adopt', root, '--move', '--replace')).code).toBe(0)
  expect(existsSync(blob)).toBe(false)
  expect([...(await named(daemon)).keys()]).not.toContain(`sha256:${sha256(mine)}`)
})

it('a blob that rotted here is no reason to give up the original', async () => {
  const daemon = await testDaemon()
  const root = join(daemon.folder, 'ollama')
  // large enough that its tree is kept, so that an import of what is here reads nothing
  const bytes = makeGguf({ tensors: [{ name: 'output.weight', shape: [1024, 4096], type: 'Q8_0' }], seed: 7 })
  putOllama(root, 'tiny', 'latest', bytes)
  expect((await daemon.svc('adopt', root)).code).toBe(0)
  const digest = sha256(bytes)
  const blob = join(daemon.root, 'blobs/sha256', digest.slice(0, 2), digest.slice(2))
  const rotten = Buffer.from(bytes)
  rotten[rotten.length >> 1]! ^= 1
  chmodSync(blob, 0o600)
  writeFileSync(blob, rotten)
  await daemon.svc('adopt', root, '--move')
  const original = join(root, `blobs/sha256-${digest}`)
  const here = existsSync(blob) && sha256(readFileSync(blob)) === digest
  expect(here || isThere(original, bytes)).toBe(true)
})

it('an older snapshot keeps what it shares with the one that comes in', async () => {
  const daemon = await testDaemon()
  const root = join(daemon.folder, 'hub')
  const [shared, old] = [weights(8), weights(9)]
  const [before, now] = ['1'.repeat(40), '2'.repeat(40)]
  putHub(root, 'Acme/Tiny', { 'tiny-q8_0.gguf': shared, 'tiny-q4_0.gguf': old }, before)
  putHub(root, 'Acme/Tiny', { 'tiny-q8_0.gguf': shared }, now)
  expect((await daemon.svc('adopt', root, '--move')).code).toBe(0)
  const snapshot = join(root, 'models--Acme--Tiny/snapshots', before)
  expect(readdirSync(snapshot).sort()).toEqual(['tiny-q4_0.gguf', 'tiny-q8_0.gguf'])
  expect(isThere(join(snapshot, 'tiny-q8_0.gguf'), shared)).toBe(true)
})

/** Where each kind of cache would keep a model, with names that meet once they are references. */
const KINDS = {
  ollama: (root: string, at: string, tag: string, bytes: Buffer) => {
    putOllama(root, at, tag, bytes, 'Q8_0')
    return join(root, `blobs/sha256-${sha256(bytes)}`)
  },
  dmr: (root: string, at: string, tag: string, bytes: Buffer) => {
    putDocker(root, `${at}:${tag}`, bytes)
    return join(root, 'blobs/sha256', sha256(bytes))
  },
  hf: (root: string, at: string, tag: string, bytes: Buffer) => {
    const repo = at.split('/').slice(-2).join('/')
    putHub(root, repo, { [`${tag}-q8_0.gguf`]: bytes }, sha256(tag).slice(0, 40))
    return join(root, `models--${repo.replace('/', '--')}/blobs`, sha256(bytes))
  },
  lmstudio: (root: string, at: string, tag: string, bytes: Buffer) => {
    const path = join(root, ['acme', ...at.split('/')].slice(-2).join('/'), `${tag}-q8_0.gguf`)
    put(path, bytes)
    return path
  },
  llama: (root: string, at: string, tag: string, bytes: Buffer) => {
    const path = join(root, `${at.replaceAll('/', '_')}_${tag}-q8_0.gguf`)
    put(path, bytes)
    return path
  },
  ramalama: (root: string, at: string, tag: string, bytes: Buffer) => {
    const model = `${at.includes('.') ? 'oci' : 'ollama'}/${at.includes('/') ? at : `library/${at}`}`
    putRamaLama(root, model, tag, 'weights-q8_0.gguf', bytes)
    return join(root, model, 'blobs', `sha256-${sha256(bytes)}`)
  }
} as const

const VARIABLES: Readonly<Record<keyof typeof KINDS, string>> = {
  ollama: '.ollama/models',
  dmr: '.docker/models',
  hf: '.cache/huggingface/hub',
  lmstudio: '.lmstudio/models',
  llama: '.cache/llama.cpp',
  ramalama: '.local/share/ramalama/store'
}

it('whatever comes together in random caches: each model is here under a reference of its own, or still there', async () => {
  const daemon = await testDaemon()
  let round = 0
  const models = fc.array(
    fc.record({
      kind: fc.constantFrom(...(Object.keys(KINDS) as (keyof typeof KINDS)[])),
      at: fc.constantFrom(
        'qwen3',
        'acme/qwen3',
        'Acme/Qwen3',
        'acme/qwen3-4b',
        'reg.example/acme/qwen3',
        'hf.co/acme/qwen3'
      ),
      tag: fc.constantFrom('latest', '4b', '8b', '4B', '4b-q8_0')
    }),
    { minLength: 2, maxLength: 8 }
  )
  await fc.assert(
    fc.asyncProperty(models, fc.boolean(), async (list, replaces) => {
      const home = join(daemon.folder, `home-${round++}`)
      const kept = new Map<string, { readonly path: string; readonly bytes: Buffer }>()
      for (const [i, { kind, at, tag }] of list.entries()) {
        const bytes = weights(1000 * round + i)
        const path = KINDS[kind](join(home, VARIABLES[kind]), at, tag, bytes)
        // a later one of the very same name is the same file
        for (const [digest, other] of kept) if (!isThere(other.path, other.bytes)) kept.delete(digest)
        kept.set(sha256(bytes), { path, bytes })
      }
      const words = ['adopt', '--move', '--yes', ...(replaces ? ['--replace'] : [])]
      await daemon.svcWith(words, { env: { HOME: home } })
      await daemon.svc('gc')
      const refs = await named(daemon)
      for (const [digest, { path, bytes }] of kept) {
        const own = refs.get(`sha256:${digest}`)?.size ?? 0
        if (own === 0) expect([path, isThere(path, bytes)]).toEqual([path, true])
      }
    }),
    { numRuns: 5, seed: 7 }
  )
})
