// `svc adopt --move` of random caches; single cases are in adopt-move.test.ts.
import { join } from 'node:path'
import { makeGguf } from '@svc/testkit/models'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { isThere, named } from './adopted-models.ts'
import { testDaemon } from './support.ts'
import { put, putDocker, putHub, putOllama, putRamaLama, sha256 } from './tool-caches.ts'

const weights = (seed: number): Buffer => makeGguf({ seed })

/** Where each kind of cache keeps a model; some of the names give the same reference. */
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

it('random caches: each model is either imported under its own reference or still at its origin', async () => {
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
