// The names of adopted models, and what `--move` leaves to other snapshots; what it may delete is in adopt-move.test.ts.
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { makeGguf } from '@svc/testkit/models'
import { expect, it, vi } from 'vitest'
import { isThere, named } from './adopted-models.ts'
import { testDaemon } from './support.ts'
import { put, putHub, putOllama, sha256 } from './tool-caches.ts'

vi.setConfig({ testTimeout: 60_000 })

const weights = (seed: number): Buffer => makeGguf({ seed })

it('two sizes of one model with Ollama tags keep separate names', async () => {
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

it('models with the same name and quant get separate names, and keep them the next time', async () => {
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

it('an older snapshot keeps the files that it shares with the imported one', async () => {
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

it('a dry run lists the same models as the run, also in overlapping caches', async () => {
  const daemon = await testDaemon()
  const home = join(daemon.folder, 'home')
  const env = { HOME: home }
  const ollama = join(home, '.ollama/models')
  const [one, two, three] = [weights(31), weights(32), weights(33)]
  // two quants of one tag's model share its name; the same tag of another registry does not, nor does another tool's
  putOllama(ollama, 'tiny', '4b-q8_0', one)
  putOllama(ollama, 'tiny', '4b-q4_K_M', two, 'Q4_K_M')
  putOllama(ollama, 'tiny', '4b', three)
  putHub(join(home, '.cache/huggingface/hub'), 'Acme/Twice', { 'twice-q8_0.gguf': one })
  put(join(home, '.lmstudio/models/acme/twice/twice-q8_0.gguf'), one)
  put(join(home, '.lmstudio/models/acme/same/same-q8_0.gguf'), two)
  put(join(home, '.lmstudio/models/Acme/same/same-q8_0.gguf'), two)
  const shown = JSON.parse((await daemon.svcWith(['adopt', '--dry-run', '--json'], { env })).stdout).models
  const named = shown.flatMap(({ as, quants }: { readonly as: string; readonly quants: readonly string[] }) =>
    quants.map((quant) => `${as}:${quant}`)
  )
  expect((await daemon.svc('ls')).stdout).toBe('')
  const done = JSON.parse((await daemon.svcWith(['adopt', '--json'], { env })).stdout).models
  expect(done.flatMap(({ refs }: { readonly refs: readonly string[] }) => refs)).toEqual(named)
  const once = ['acme/same:q8_0', 'acme/twice-2:q8_0', 'acme/twice:q8_0', 'ollama/tiny-4b-2:q8_0']
  expect([...new Set(named)].sort()).toEqual([...once, 'ollama/tiny-4b:q4_k_m', 'ollama/tiny-4b:q8_0'])
  // the same once more gives the same names
  const again = JSON.parse((await daemon.svcWith(['adopt', '--json'], { env })).stdout).models
  expect(again.flatMap(({ refs }: { readonly refs: readonly string[] }) => refs)).toEqual(named)
})
